"""The data behind figures, read by the SDK's own chart classes."""

import pytest
from conftest import sandbox_at
from e2b_code_interpreter.charts import (
    BarChart,
    BoxAndWhiskerChart,
    Chart,
    ChartType,
    LineChart,
    PieChart,
    ScaleType,
    ScatterChart,
    SuperChart,
)

IMPORTS = "import datetime\nimport numpy as np\nimport pandas as pd\nimport matplotlib.pyplot as plt\n"


@pytest.fixture(scope="module")
def context(server):
    """One for all of these: each would import the same libraries anew, and a figure that was shown is closed."""
    sandbox = sandbox_at(server)
    created = sandbox.create_code_context()
    yield created
    sandbox.remove_code_context(created)


def chart(sandbox, context, code):
    execution = sandbox.run_code(f"{IMPORTS}{code}\nplt.show()", context=context)
    assert execution.error is None, execution.error.traceback
    return execution.results[0].chart


def test_lines(sandbox, context):
    code = "x = np.linspace(0, 6, 100)\nplt.plot(x, np.sin(x), label='sin(x)')\nplt.plot(x, np.cos(x))\n"
    code += "plt.axhline(0)\nplt.xlabel('Time (s)')\nplt.ylabel('Strength [Hz]')\nplt.title('Waves')"
    created = chart(sandbox, context, code)
    assert isinstance(created, LineChart)
    assert (created.title, created.x_label, created.x_unit, created.y_unit) == ("Waves", "Time (s)", "s", "Hz")
    assert [(line.label, len(line.points)) for line in created.elements] == [("sin(x)", 100), ("", 100)]
    assert all(isinstance(value, float) for point in created.elements[0].points for value in point)
    assert all(isinstance(tick, float) for tick in created.x_ticks)
    assert len(created.x_ticks) == len(created.x_tick_labels)
    assert (created.x_scale, created.y_scale) == (ScaleType.LINEAR, ScaleType.LINEAR)


def test_scales(sandbox, context):
    dates = "[datetime.date(2023, 9, 1) + datetime.timedelta(days=n) for n in range(3)]"
    created = chart(sandbox, context, f"plt.plot({dates}, ['A', 'B', 'C'])")
    assert (created.x_scale, created.y_scale) == (ScaleType.DATETIME, ScaleType.CATEGORICAL)
    assert created.elements[0].points[1] == ("2023-09-02", "B")
    assert created.y_ticks == ["A", "B", "C"]
    created = chart(sandbox, context, "plt.plot([1, 10, 100])\nplt.yscale('log')")
    assert created.y_scale == ScaleType.LOG


def test_pandas_counts_time_in_periods(sandbox, context):
    created = chart(sandbox, context, "pd.Series([1, 2], index=pd.date_range('2024-01-01', periods=2)).plot()")
    assert (created.x_scale, created.elements[0].points[0]) == (ScaleType.DATETIME, ("2024-01-01T00:00:00", 1.0))


def test_scattered_points(sandbox, context):
    created = chart(sandbox, context, "plt.scatter([1, 2], [3, 4], label='first')\nplt.plot([5], [6], 'o', label='second')")
    assert isinstance(created, ScatterChart)
    assert created.title is None
    points = {each.label: each.points for each in created.elements}
    assert points == {"first": [(1.0, 3.0), (2.0, 4.0)], "second": [(5.0, 6.0)]}
    created = chart(sandbox, context, "plt.scatter(['a', 'b'], [3, 4])")
    assert created.elements[0].points == [("a", 3.0), ("b", 4.0)]


def test_bars(sandbox, context):
    created = chart(sandbox, context, "plt.bar(['A', 'B'], [100, 200])\nplt.xlabel('Authors')")
    assert isinstance(created, BarChart)
    assert [(bar.label, bar.value) for bar in created.elements] == [("A", 100), ("B", 200)]
    assert (created.x_label, created.y_label, created.x_unit) == ("Authors", None, None)


def test_bars_in_groups_and_lying(sandbox, context):
    code = "x = np.arange(2)\nplt.bar(x - 0.2, [1, 2], 0.4, label='one')\nplt.bar(x + 0.2, [3, 4], 0.4, label='two')\n"
    code += "plt.xticks(x, ['k', 'l'])"
    created = chart(sandbox, context, code)
    assert [(bar.label, bar.group, bar.value) for bar in created.elements] == [
        ("k", "one", 1),
        ("l", "one", 2),
        ("k", "two", 3),
        ("l", "two", 4),
    ]
    created = chart(sandbox, context, "pd.Series([1, 2], index=['a', 'b']).plot.barh()")
    assert [(bar.label, bar.value) for bar in created.elements] == [("a", 1), ("b", 2)]


def test_a_pie(sandbox, context):
    created = chart(sandbox, context, "plt.pie([90, 10], labels=['No', 'Yes'], autopct='%1.1f%%')\nplt.title('Up early?')")
    assert isinstance(created, PieChart)
    assert created.title == "Up early?"
    assert [(each.label, each.angle, each.radius) for each in created.elements] == [("No", 324, 1), ("Yes", 36, 1)]


def test_boxes(sandbox, context):
    data = "data = [[1, 2, 3, 4, 5, 100], [2, 3, 4]]\nplt.boxplot(data, tick_labels=['a', 'b'])\n"
    created = chart(sandbox, context, data + "plt.boxplot(data, tick_labels=['a', 'b'], patch_artist=True)")
    assert isinstance(created, BoxAndWhiskerChart)
    assert [box.label for box in created.elements] == ["a", "b"]
    box = created.elements[0]
    assert (box.min, box.first_quartile, box.median, box.third_quartile, box.max) == (1.0, 2.25, 3.5, 4.75, 5.0)
    assert box.outliers == [100.0]


def test_boxes_that_were_cleared_are_gone(sandbox, context):
    created = chart(sandbox, context, "plt.boxplot([[1, 2]])\nplt.cla()\nplt.plot([1, 2])")
    assert isinstance(created, LineChart)


def test_several_axes(sandbox, context):
    code = "figure, axes = plt.subplots(1, 2)\nfigure.suptitle('Both')\naxes[0].plot([1, 2])\naxes[1].scatter([1], [2])"
    created = chart(sandbox, context, code)
    assert isinstance(created, SuperChart)
    assert created.title == "Both"
    assert [type(each) for each in created.elements] == [LineChart, ScatterChart]


def test_a_colour_bar_is_no_chart_of_its_own(sandbox, context):
    created = chart(sandbox, context, "plt.scatter([1, 2], [1, 2], c=[1, 2])\nplt.colorbar()")
    assert isinstance(created, ScatterChart)


def test_what_is_none_of_them(sandbox, context):
    created = chart(sandbox, context, "figure, axes = plt.subplots()\naxes.add_artist(plt.Circle((0, 0), 1))\nplt.title('Circle')")
    assert type(created) is Chart
    assert (created.type, created.title, created.elements) == (ChartType.UNKNOWN, "Circle", [])


def test_too_many_points_are_left_to_the_picture(sandbox, context):
    created = chart(sandbox, context, "plt.plot(np.arange(200_000))")
    assert (created.type, created.elements) == (ChartType.UNKNOWN, [])
