"""A client that goes away takes its code with it, and nothing else."""

import threading
import time

import httpx
import pytest

ENDLESS = {
    "python": [
        "import time; time.sleep(600)",
        "while True: pass",
        "import asyncio; await asyncio.sleep(600)",
        "import subprocess; subprocess.run(['sleep', '600'])",
        "!sleep 600",
        "while True: print('x' * 1000)",
    ],
    "bash": ["sleep 600", "while true; do :; done", "f() { sleep 600; f; }; f", "yes", "(sleep 600); echo after"],
    "javascript": [
        "while (true) {}",
        "await 1; while (true) {}",
        "await new Promise(() => {})",
        "require('child_process').execSync('sleep 600')",
        "while (true) console.log('x')",
    ],
}
PROOF = {"python": "print(kept)", "bash": "echo $kept", "javascript": "console.log(kept)"}
KEEP = {"python": "kept = 1", "bash": "kept=1", "javascript": "const kept = 1"}


def leave_early(server, body):
    """Asks for an execution and closes the connection once it runs."""
    with httpx.stream("POST", f"{server.url}/execute", json=body, timeout=30, trust_env=False) as reply:
        assert next(reply.iter_lines())


@pytest.mark.parametrize("language, code", [(language, code) for language, codes in ENDLESS.items() for code in codes])
def test_the_code_stops_and_the_state_stays(sandbox, server, language, code):
    context = sandbox.create_code_context(language=language)
    assert sandbox.run_code(KEEP[language], context=context).error is None
    leave_early(server, {"code": code, "context_id": context.id})
    execution = sandbox.run_code(PROOF[language], context=context, timeout=30)
    assert ("".join(execution.logs.stdout), execution.error) == ("1\n", None)
    sandbox.remove_code_context(context)


def test_a_timeout_of_the_sdk(sandbox, context):
    from e2b import TimeoutException

    with pytest.raises(TimeoutException):
        sandbox.run_code("import time; time.sleep(600)", context=context, timeout=1)
    assert sandbox.run_code("1 + 1", context=context, timeout=30).text == "2"


def test_one_who_leaves_the_queue_never_runs(sandbox, server, context):
    gate = server.home / "queue-gate"
    waiting = f"import os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)\n'first'"
    first = []
    thread = threading.Thread(target=lambda: first.append(sandbox.run_code(waiting, context=context)))
    thread.start()
    time.sleep(0.3)
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{server.url}/execute", json={"code": "left = 1", "context_id": context.id}, timeout=0.5, trust_env=False)
    gate.touch()
    thread.join()
    assert first[0].text == "first"
    assert sandbox.run_code("'left' in globals()", context=context).text == "False"
    gate.unlink()


def test_an_interrupt_between_executions_hurts_nobody(sandbox, context):
    import os
    import signal

    pid = int(sandbox.run_code("import os\nos.getpid()", context=context).text)
    os.kill(pid, signal.SIGINT)
    assert sandbox.run_code("1 + 1", context=context).text == "2"


def test_code_that_will_not_stop_can_be_restarted(sandbox, server, context):
    stubborn = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: time.sleep(1)"
    leave_early(server, {"code": stubborn, "context_id": context.id})
    sandbox.restart_code_context(context)
    assert sandbox.run_code("1 + 1", context=context, timeout=30).text == "2"
