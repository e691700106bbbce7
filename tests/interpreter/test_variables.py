"""Environment variables: the sandbox's, and those of one execution."""

import pytest
from conftest import sandbox_at
from interpreter import Interpreter, agent_with

READ = {
    "python": "import os\nprint(os.environ.get('{name}', 'none'))",
    "javascript": "console.log(process.env.{name} ?? 'none')",
    "bash": 'echo "${{{name}-none}}"',
}
WRITE = {
    "python": "import os\nos.environ['{name}'] = 'own'",
    "javascript": "process.env.{name} = 'own'; 0",
    "bash": "export {name}=own",
}
LANGUAGES = list(READ)


@pytest.fixture(scope="module")
def variables():
    return {"FROM_SANDBOX": "old", "CHANGED": "given", "ODD": "a 'b' \"c\" $d\nü"}


@pytest.fixture(scope="module")
def configured_sandbox(variables):
    with agent_with(variables) as agent:
        interpreter = Interpreter(agent)
        yield sandbox_at(interpreter)
        interpreter.close()


def read(sandbox, language, name, **options):
    execution = sandbox.run_code(READ[language].format(name=name), language=language, **options)
    assert execution.error is None
    return "".join(execution.logs.stdout).removesuffix("\n")


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_sandbox_has_variables(configured_sandbox, variables, language):
    assert read(configured_sandbox, language, "ODD") == variables["ODD"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_those_of_an_execution_are_taken_back(configured_sandbox, language):
    assert read(configured_sandbox, language, "OWN_ONE", envs={"OWN_ONE": "x 'y'\n$z"}) == "x 'y'\n$z"
    assert read(configured_sandbox, language, "OWN_ONE") == "none"
    assert read(configured_sandbox, language, "FROM_SANDBOX", envs={"FROM_SANDBOX": "other"}) == "other"
    assert read(configured_sandbox, language, "FROM_SANDBOX") == "old"


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_code_sets_stays(configured_sandbox, language):
    configured_sandbox.run_code(WRITE[language].format(name="CHANGED"), language=language)
    assert read(configured_sandbox, language, "CHANGED") == "own"
    assert read(configured_sandbox, language, "CHANGED", envs={"CHANGED": "once"}) == "once"
    assert read(configured_sandbox, language, "CHANGED") == "own"


@pytest.mark.parametrize("language", LANGUAGES)
def test_they_are_taken_back_after_an_error_too(configured_sandbox, language):
    code = {"python": "1/0", "javascript": "throw 1", "bash": "false"}[language]
    assert configured_sandbox.run_code(code, language=language, envs={"TRACE": "1"}).error is not None
    assert read(configured_sandbox, language, "TRACE") == "none"


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_sandbox_that_gets_its_variables_later(configured_sandbox, variables, language):
    variables.pop("LATER", None)
    assert read(configured_sandbox, language, "LATER") == "none"
    variables["LATER"] = "now"
    assert read(configured_sandbox, language, "LATER") == "now"
    del variables["LATER"]
    assert read(configured_sandbox, language, "LATER") == "none"


def test_without_an_agent_code_runs_all_the_same(sandbox):
    assert read(sandbox, "python", "FROM_SANDBOX") == "none"
