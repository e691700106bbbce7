"""`run_code` and contexts through the official SDK, in real sandboxes of the real template."""

import base64
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from e2b import InvalidArgumentException, NotFoundException, TimeoutException


def test_state_is_kept_and_the_last_value_is_the_result(shared):
    shared.run_code("x = 20")
    execution = shared.run_code("print('said'); x + 22")
    assert (execution.text, "".join(execution.logs.stdout), execution.error) == ("42", "said\n", None)


def test_first_execution_in_a_fresh_sandbox(half, capsys):
    started = time.monotonic()
    sandbox = half.create()
    created = time.monotonic()
    assert sandbox.run_code("6 * 7").text == "42"
    with capsys.disabled():
        print(f"\n  create {created - started:.2f} s, first execution {time.monotonic() - created:.2f} s")
    sandbox.kill()


def test_results_are_rich(shared):
    code = "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3], label='line')\nplt.title('A chart')\nplt.show()"
    [figure] = shared.run_code(code).results
    assert base64.b64decode(figure.png).startswith(b"\x89PNG")
    assert (figure.chart.type.value, figure.chart.title) == ("line", "A chart")
    [table] = shared.run_code("import pandas as pd\npd.DataFrame({'a': [1, 2]})").results
    assert table.data == {"a": [1, 2]} and "<table" in table.html


def test_box_plots_take_the_labels_of_existing_code(shared):
    """E2B's own template has a version of matplotlib that still has this parameter."""
    code = "import matplotlib.pyplot as plt\nplt.boxplot([[1, 2, 3], [2, 3, 4]], labels=['a', 'b'])\nplt.show()"
    execution = shared.run_code(code)
    assert execution.error is None, execution.error
    [chart] = [result.chart for result in execution.results if result.chart]
    assert (chart.type.value, [box.label for box in chart.elements]) == ("box_and_whisker", ["a", "b"])


def test_errors_include_their_trace(shared):
    error = shared.run_code("def broken():\n    return 1 / 0\nbroken()").error
    assert (error.name, error.value) == ("ZeroDivisionError", "division by zero")
    assert "broken()" in error.traceback


def test_output_comes_while_it_is_written(shared):
    seen, received = [], threading.Event()

    def listen(message):
        seen.append(message.line)
        received.set()

    code = "import os, time\nprint('first')\nwhile not os.path.exists('gate'): time.sleep(0.05)\nprint('second')"
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(shared.run_code, code, on_stdout=listen)
        # It cannot end before the gate is open, and that is opened by what was heard.
        assert received.wait(200)
        shared.files.write("/home/user/gate", "")
        running.result()
    assert "".join(seen) == "first\nsecond\n"


def test_variables_of_the_sandbox_and_of_one_execution(shared):
    code = "import os; (os.environ.get('GIVEN'), os.environ.get('ONCE'))"
    assert shared.run_code(code, envs={"ONCE": "now"}).text == "('at create', 'now')"
    assert shared.run_code(code).text == "('at create', None)"


@pytest.mark.parametrize(
    "language, code, text",
    [
        ("bash", "v=bash; echo $v-$((6*7))", "bash-42\n"),
        ("javascript", "console.log([1, 2].map((x) => x * 21))", "[ 21, 42 ]\n"),
        ("js", "console.log(await Promise.resolve(42))", "42\n"),
    ],
)
def test_other_languages(shared, language, code, text):
    execution = shared.run_code(code, language=language)
    assert "".join(execution.logs.stdout) == text, execution


def test_a_language_that_is_not_installed_says_so(shared):
    with pytest.raises(Exception, match="(?i)java.*(not installed|installed)"):
        shared.run_code("1", language="java")


def test_contexts_are_apart(shared):
    context = shared.create_code_context(cwd="/tmp", language="python")
    shared.run_code("y = 1", context=context)
    assert shared.run_code("import os; os.getcwd()", context=context).text == "/tmp"
    assert shared.run_code("y").error.name == "NameError"
    assert context.id in [one.id for one in shared.list_code_contexts()]
    shared.restart_code_context(context)
    assert shared.run_code("y", context=context).error.name == "NameError"
    shared.remove_code_context(context)
    assert context.id not in [one.id for one in shared.list_code_contexts()]
    with pytest.raises(NotFoundException):
        shared.run_code("1", context=context)


def test_context_and_language_at_once_are_refused(shared):
    context = shared.create_code_context()
    with pytest.raises(InvalidArgumentException):
        shared.run_code("1", language="python", context=context)
    shared.remove_code_context(context)


def test_a_client_that_gives_up_interrupts_what_runs(shared):
    with pytest.raises(TimeoutException):
        shared.run_code("import time\ntime.sleep(600)", timeout=1)
    assert shared.run_code("'free again'").text == "free again"


def test_a_dead_kernel_comes_back(shared):
    shared.run_code("import os; os._exit(1)")
    assert shared.run_code("1 + 1").text == "2"


def test_files_and_commands_see_the_same_home(shared):
    shared.run_code("open('made.txt', 'w').write('by code')")
    assert shared.files.read("/home/user/made.txt") == "by code"


def test_state_outlives_a_pause(half):
    sandbox = half.create()
    sandbox.run_code("kept = 'in memory'")
    sandbox.pause()
    sandbox.connect()
    assert sandbox.run_code("kept").text == "in memory"
    sandbox.kill()


def test_packages_can_be_installed(shared):
    """From a folder, since no index is reached from here: what counts is that pip works and the kernel finds the result."""
    shared.commands.run(
        "mkdir -p pkg/own_words && echo 'WORD = 42' > pkg/own_words/__init__.py && "
        "printf '[project]\\nname=\"own-words\"\\nversion=\"1\"\\n' > pkg/pyproject.toml && "
        "python3 -c 'import setuptools' && pip install --no-build-isolation --no-index ./pkg",
        timeout=600,
    )
    assert shared.run_code("import own_words; own_words.WORD").text == "42"
