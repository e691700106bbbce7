"""Python: results, errors, state, what IPython adds."""

import pytest


def test_the_last_value_is_the_result(sandbox, context):
    execution = sandbox.run_code("x = 40\nx + 2", context=context)
    assert execution.text == "42"
    assert [result.is_main_result for result in execution.results] == [True]
    assert execution.error is None


def test_texts_come_without_quotes(sandbox, context):
    assert sandbox.run_code("'bar'", context=context).text == "bar"


def test_state_stays_and_executions_are_counted(sandbox, context):
    first = sandbox.run_code("x = 1", context=context)
    second = sandbox.run_code("x += 1\nx", context=context)
    assert (first.execution_count, second.execution_count, second.text) == (1, 2, "2")


def test_an_error_has_name_value_and_a_plain_traceback(sandbox, context):
    error = sandbox.run_code("def divide():\n    return 1 / 0\ndivide()", context=context).error
    assert (error.name, error.value) == ("ZeroDivisionError", "division by zero")
    assert "return 1 / 0" in error.traceback
    assert "\x1b" not in error.traceback


@pytest.mark.parametrize(
    "code, name", [("1 +", "SyntaxError"), ("raise SystemExit(3)", "SystemExit"), ("%nosuchmagic", "UsageError")]
)
def test_code_that_cannot_run_is_an_error(sandbox, context, code, name):
    assert sandbox.run_code(code, context=context).error.name == name


def test_asking_for_input_is_an_error_not_a_wait(sandbox, context):
    assert sandbox.run_code("input('name? ')", context=context).error.name == "StdinNotImplementedError"


def test_indented_code_runs(sandbox, context):
    assert sandbox.run_code("    a = 1\n    a", context=context).text == "1"


def test_commands_print_what_they_print(sandbox, context, server):
    execution = sandbox.run_code("!pwd\n!echo oops >&2", context=context)
    assert "".join(execution.logs.stdout) == f"{server.home}\n"
    assert "".join(execution.logs.stderr) == "oops\n"


def test_help_is_printed(sandbox, context):
    assert "number of items" in "".join(sandbox.run_code("len?", context=context).logs.stdout)


def test_awaiting_works_and_tasks_live_on(sandbox, context):
    code = "import asyncio\ndone = asyncio.Event()\nasync def later():\n    await asyncio.sleep(0.05)\n    done.set()\n"
    code += "task = asyncio.create_task(later())"
    assert sandbox.run_code(code, context=context).error is None
    assert sandbox.run_code("await done.wait()\n'done'", context=context).text == "done"


def test_children_print_too(sandbox, context):
    code = "import os, subprocess\nsubprocess.run(['echo', 'from a child'])\nos.system('echo from C')\nprint('last')"
    printed = "".join(sandbox.run_code(code, context=context).logs.stdout)
    assert printed == "from a child\nfrom C\nlast\n"


def test_a_forked_child_does_not_answer_for_the_kernel(sandbox, context):
    code = "import os\npid = os.fork()\nif pid:\n    os.waitpid(pid, 0)\nprint('child' if pid == 0 else 'parent')"
    execution = sandbox.run_code(code, context=context)
    assert "".join(execution.logs.stdout) == "child\nparent\n"
    assert sandbox.run_code("'still here'", context=context).text == "still here"


def test_multiprocessing_works(sandbox, context):
    code = (
        "import multiprocessing\nwith multiprocessing.get_context('fork').Pool(2) as pool:\n    print(pool.map(abs, [-1, -2]))"
    )
    assert "".join(sandbox.run_code(code, context=context).logs.stdout) == "[1, 2]\n"


def test_output_between_executions_does_not_block(sandbox, context):
    code = "import threading\nended = threading.Event()\ndef talk():\n"
    code += "    for _ in range(300): print('x' * 1000)\n    ended.set()\n"
    sandbox.run_code(code + "threading.Timer(0.1, talk).start()", context=context)
    assert sandbox.run_code("ended.wait(200)", context=context).text == "True"


def test_users_find_no_program_of_ours(sandbox, context):
    assert sandbox.run_code("import sys\nsys.path[0]", context=context).text == ""
    assert "SANDYARD" not in sandbox.run_code("import os\nstr(dict(os.environ))", context=context).text
