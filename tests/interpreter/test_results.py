"""Every format a result can have."""

import base64
import json

import pytest

PNG = b"\x89PNG"


@pytest.mark.parametrize(
    "displayed, field, value",
    [
        ("HTML('<b>x</b>')", "html", "<b>x</b>"),
        ("Markdown('# x')", "markdown", "# x"),
        ("Latex('$x$')", "latex", "$x$"),
        ("Javascript('1')", "javascript", "1"),
        ("JSON({'a': [1, None]})", "json", {"a": [1, None]}),
    ],
)
def test_display_shows(sandbox, context, displayed, field, value):
    execution = sandbox.run_code(f"from IPython.display import *\ndisplay({displayed})", context=context)
    [result] = execution.results
    assert (result[field], result.is_main_result) == (value, False)


def test_svg(sandbox, context):
    svg = '<svg xmlns="http://www.w3.org/2000/svg"/>'
    execution = sandbox.run_code(f"from IPython.display import SVG\nSVG('{svg}')", context=context)
    assert execution.results[0].svg == svg


def test_other_formats_are_extra(sandbox, context):
    execution = sandbox.run_code("display({'application/vnd.own+json': {'z': 1}}, raw=True)", context=context)
    assert execution.results[0].extra == {"application/vnd.own+json": {"z": 1}}


def test_numbers_outside_json_do_not_break_the_stream(sandbox, context):
    execution = sandbox.run_code("display({'application/json': {'a': float('nan')}}, raw=True)", context=context)
    assert execution.results[0].json == {"a": None}


def test_objects_with_their_own_representations(sandbox, context):
    code = "class Own:\n    def _repr_html_(self): return '<i>own</i>'\n    def __repr__(self): return 'own'\nOwn()"
    [result] = sandbox.run_code(code, context=context).results
    assert (result.html, result.text, result.is_main_result) == ("<i>own</i>", "own", True)


def test_a_data_frame_is_text_html_and_data(sandbox, context):
    code = (
        "import pandas as pd\npd.DataFrame({'a': [1, 2, 3], 'd': pd.date_range('2024-01-01', periods=3), 'f': [1.5, None, 2]})"
    )
    [result] = sandbox.run_code(code, context=context).results
    assert "<table" in result.html and "2024-01-02" in result.text
    assert result.data["a"] == [1, 2, 3]
    assert result.data["d"] == ["2024-01-01T00:00:00", "2024-01-02T00:00:00", "2024-01-03T00:00:00"]
    assert result.data["f"] == [1.5, None, 2.0]


def test_odd_tables(sandbox, context):
    code = (
        "import pandas as pd, numpy as np\n"
        "display(pd.DataFrame({('a', 'b'): [True], 3: [np.inf]}))\n"
        "display(pd.DataFrame([[1, 2]], columns=['same', 'other']).rename(columns={'other': 'same'}))\n"
        "pd.Series([pd.Timedelta('1d'), pd.NaT], name='s')"
    )
    execution = sandbox.run_code(code, context=context)
    assert execution.error is None
    assert execution.results[0].data["3"] == [None]
    assert execution.results[2].data == {"s": ["1 days 00:00:00", None]}


def test_a_figure_left_open_is_a_picture(sandbox, context):
    execution = sandbox.run_code("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nNone", context=context)
    [figure] = execution.results
    assert base64.b64decode(figure.png, validate=True).startswith(PNG)
    assert not figure.is_main_result


def test_figures_shown_are_not_shown_again(sandbox, context):
    code = "import matplotlib.pyplot as plt\nfor n in range(2):\n    plt.plot([n])\n    plt.show()"
    assert len(sandbox.run_code(code, context=context).results) == 2


def test_other_formats_of_figures(sandbox, context):
    code = "%config InlineBackend.figure_formats = ['svg', 'pdf']\nimport matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()"
    [figure] = sandbox.run_code(code, context=context).results
    assert "<svg" in figure.svg
    assert base64.b64decode(figure.pdf).startswith(b"%PDF")


def test_pictures_of_pillow(sandbox, context, server):
    code = "from PIL import Image\nimage = Image.new('RGB', (4, 4))\nimage.show()\nimage.save('test.png')\nimage"
    execution = sandbox.run_code(code, context=context)
    assert [base64.b64decode(result.png)[:4] for result in execution.results] == [PNG] * 3
    assert (server.home / "test.png").read_bytes()[:4] == PNG


def test_a_huge_result_is_left_out_with_a_word(sandbox, context):
    execution = sandbox.run_code("'x' * 70_000_000", context=context)
    assert "too large" in execution.results[0].text


def test_an_execution_can_be_kept_as_json(sandbox, context):
    execution = sandbox.run_code("print('a')\n1", context=context)
    assert json.loads(execution.to_json())["results"] == [{"text": "1"}]
