"""Kernels that die, and how that is reported."""

import os
import signal
import threading

import pytest
from conftest import sandbox_at
from waiting import wait_for


@pytest.mark.parametrize(
    "language, code, value",
    [
        ("python", "import os; os._exit(7)", "exit code 7"),
        ("python", "import os; os.kill(os.getpid(), 9)", "signal 9"),
        ("python", "import ctypes; ctypes.string_at(0)", "signal 11"),
        ("python", "import os, time; os.closerange(3, 256); time.sleep(600)", "closed its connection"),
        ("javascript", "process.exit(3)", "exit code 3"),
        ("javascript", "process.kill(process.pid, 'SIGKILL')", "signal 9"),
        ("bash", "kill -9 $$", "signal 9"),
    ],
)
def test_a_death_is_an_error_and_the_context_comes_back(sandbox, language, code, value):
    context = sandbox.create_code_context(language=language)
    alive = {"python": "print('before')", "javascript": "console.log('before')", "bash": "echo before"}[language]
    execution = sandbox.run_code(f"{alive}\n{code}", context=context)
    assert "".join(execution.logs.stdout) == "before\n"
    assert execution.error.name == "KernelDied"
    assert value in execution.error.value
    after = sandbox.run_code(alive, context=context)
    assert ("".join(after.logs.stdout), after.error, after.execution_count) == ("before\n", None, 1)
    sandbox.remove_code_context(context)


def test_a_dead_kernel_with_living_children(sandbox, context):
    code = "import os\nif os.fork() == 0:\n    import time; time.sleep(600)\nos._exit(5)"
    assert "exit code 5" in sandbox.run_code(code, context=context).error.value
    assert sandbox.run_code("1", context=context).text == "1"


def test_a_death_between_executions(sandbox, context):
    pid = int(sandbox.run_code("x = 1\nimport os\nos.getpid()", context=context).text)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not os.path.exists(f"/proc/{pid}"), "the kernel is collected")
    assert sandbox.run_code("'x' in globals()", context=context).text == "False"


def test_exit_ends_the_kernel_without_an_error(sandbox, context):
    assert sandbox.run_code("x = 1\nexit()", context=context).error is None
    assert sandbox.run_code("'x' in globals()", context=context).text == "False"


def test_a_restart_while_code_runs(sandbox, server, context):
    outcome = []
    running = threading.Event()
    code = "print('running', flush=True)\nimport time\ntime.sleep(600)"
    thread = threading.Thread(
        target=lambda: outcome.append(sandbox.run_code(code, context=context, on_stdout=lambda _: running.set()))
    )
    thread.start()
    assert running.wait(120)
    sandbox.restart_code_context(context)
    thread.join(120)
    assert (outcome[0].error.name, outcome[0].error.value) == ("KernelDied", "the context was restarted")
    assert sandbox.run_code("1", context=context).text == "1"


def test_a_removal_while_code_runs(sandbox):
    context = sandbox.create_code_context()
    outcome = []
    running = threading.Event()
    code = "print('running', flush=True)\nimport time\ntime.sleep(600)"
    thread = threading.Thread(
        target=lambda: outcome.append(sandbox.run_code(code, context=context, on_stdout=lambda _: running.set()))
    )
    thread.start()
    assert running.wait(120)
    sandbox.remove_code_context(context)
    thread.join(120)
    assert outcome[0].error.value == "the context was removed"


def test_the_fork_server_can_be_ended(own_server):
    sandbox = sandbox_at(own_server)
    parent = int(sandbox.run_code("import os\nos.getppid()").text)
    os.kill(parent, signal.SIGKILL)
    assert sandbox.run_code("1").text == "1"
    assert sandbox.run_code("2", context=sandbox.create_code_context()).text == "2"
    assert "exit code 3" in sandbox.run_code("import os; os._exit(3)", context=sandbox.create_code_context()).error.value


def test_nothing_is_left_of_removed_contexts(own_server):
    sandbox = sandbox_at(own_server)
    before = set(own_server.descendants())
    for language in ("python", "javascript", "bash"):
        context = sandbox.create_code_context(language=language)
        sandbox.run_code({"python": "!sleep 600 &", "bash": "sleep 600 &", "javascript": "1"}[language], context=context)
        sandbox.remove_code_context(context)
    wait_for(lambda: len(own_server.descendants()) <= len(before) + 1, lambda: str(own_server.descendants()))


def test_descriptors_are_given_back(own_server):
    sandbox = sandbox_at(own_server)
    sandbox.run_code("1")

    def count():
        return len(os.listdir(f"/proc/{own_server.pid}/fd"))

    before = count()
    for _ in range(10):
        context = sandbox.create_code_context()
        sandbox.run_code("import os; os._exit(1)", context=context)
        sandbox.restart_code_context(context)
        sandbox.remove_code_context(context)
    wait_for(lambda: count() <= before + 2, lambda: f"{before} descriptors became {count()}")
