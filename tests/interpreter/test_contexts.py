"""Contexts: made, listed, restarted, removed."""

import pytest
from e2b import NotFoundException, SandboxException


def test_the_defaults_are_there(http):
    assert [each["language"] for each in http.get("/contexts").json()][:2] == ["python", "javascript"]


def test_contexts_do_not_share_state(sandbox, context):
    sandbox.run_code("x = 1", context=context)
    other = sandbox.create_code_context()
    assert sandbox.run_code("x", context=other).error.name == "NameError"
    assert [each.id for each in sandbox.list_code_contexts()][-1] == other.id
    sandbox.remove_code_context(other)
    assert other.id not in [each.id for each in sandbox.list_code_contexts()]


def test_a_language_names_its_default_context(sandbox):
    sandbox.run_code("in_default = 1")
    assert sandbox.run_code("in_default", language="python").text == "1"


def test_the_working_directory_is_made(sandbox, server):
    context = sandbox.create_code_context(cwd=str(server.home / "new" / "place"))
    assert context.cwd == str(server.home / "new" / "place")
    assert sandbox.run_code("import os\nos.getcwd()", context=context).text == context.cwd


@pytest.mark.parametrize("cwd", ["/proc/no/such", "/dev/null/x", "a\0b"])
def test_a_directory_that_cannot_be(sandbox, cwd):
    with pytest.raises(SandboxException, match="400.*working directory"):
        sandbox.create_code_context(cwd=cwd)


def test_a_restart_forgets(sandbox, context):
    sandbox.run_code("x = 1", context=context)
    sandbox.restart_code_context(context)
    execution = sandbox.run_code("x", context=context)
    assert (execution.error.name, execution.execution_count) == ("NameError", 1)


@pytest.mark.parametrize("call", ["restart_code_context", "remove_code_context"])
def test_what_is_not_there(sandbox, call):
    with pytest.raises(NotFoundException, match="no context"):
        getattr(sandbox, call)("no-such-context")


def test_running_in_a_removed_context(sandbox):
    context = sandbox.create_code_context()
    sandbox.remove_code_context(context)
    with pytest.raises(NotFoundException):
        sandbox.run_code("1", context=context)


@pytest.mark.parametrize("language", ["r", "java"])
def test_a_language_that_is_not_installed(sandbox, language):
    with pytest.raises(SandboxException, match=f"400.*`{language}` is not installed.*python, javascript, typescript, bash"):
        sandbox.run_code("1", language=language)
    with pytest.raises(SandboxException, match="is not a language this server knows"):
        sandbox.create_code_context(language="cobol")


def test_both_a_context_and_a_language(http, context):
    reply = http.post("/execute", json={"code": "1", "context_id": context.id, "language": "python"})
    assert (reply.status_code, reply.json()["code"]) == (400, 400)


def test_a_removed_default_comes_back(own_server):
    from conftest import sandbox_at

    sandbox = sandbox_at(own_server)
    for context in sandbox.list_code_contexts():
        sandbox.remove_code_context(context)
    assert sandbox.list_code_contexts() == []
    assert sandbox.run_code("1 + 1").text == "2"
