"""Bash."""

import pytest


@pytest.fixture
def bash(sandbox):
    context = sandbox.create_code_context(language="bash")
    yield lambda code, **options: sandbox.run_code(code, context=context, **options)
    sandbox.remove_code_context(context)


def test_output_and_state(bash):
    assert bash("x=5; f() { echo $((x + 1)); }; cd /").error is None
    execution = bash("f; pwd; echo oops >&2")
    assert ("".join(execution.logs.stdout), "".join(execution.logs.stderr)) == ("6\n/\n", "oops\n")


def test_the_shell_itself_says_nothing(bash):
    execution = bash("true")
    assert (execution.logs.stdout, execution.logs.stderr, execution.results) == ([], [], [])


def test_several_lines_with_everything_in_them(bash):
    code = "cat <<'END'\n$x !y `z` \\ \"q\" 'r' ü 🎉\nEND\nfor i in 1 2; do\n  echo \"$i\"\ndone\n"
    assert "".join(bash(code).logs.stdout) == "$x !y `z` \\ \"q\" 'r' ü 🎉\n1\n2\n"


def test_a_failing_last_command_is_an_error(bash):
    error = bash("echo before; (exit 3)").error
    assert (error.name, error.value) == ("ExitStatus", "3")
    assert bash("false; true").error is None


def test_code_that_is_none(bash):
    execution = bash("if")
    assert execution.error.name == "ExitStatus"
    assert "syntax error" in "".join(execution.logs.stderr)
    assert bash("echo on").logs.stdout == ["on\n"]


def test_nothing_to_read(bash):
    assert "".join(bash("cat; echo end").logs.stdout) == "end\n"


@pytest.mark.parametrize("code, value", [("exit", None), ("exit 0", None), ("exit 4", "4"), ("set -e; false", "1")])
def test_a_script_may_end_its_shell(bash, code, value):
    bash("x=1")
    execution = bash(f"echo out; {code}")
    assert "".join(execution.logs.stdout) == "out\n"
    assert (execution.error and execution.error.value) == value
    assert "".join(execution.logs.stderr) == ""
    assert bash("echo ${x-fresh}").logs.stdout == ["fresh\n"]


def test_large_code(bash):
    assert "".join(bash("echo " + "x" * 200_000 + " | wc -c").logs.stdout).strip() == "200001"
