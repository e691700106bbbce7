"""A client that goes away takes its code with it, and nothing else."""

import json
import socket
import subprocess
import sys
import threading

import httpx
import pytest
from interpreter import SERVER

ENDLESS = {
    "python": [
        "import time; time.sleep(600)",
        "while True: pass",
        "import asyncio; await asyncio.sleep(600)",
        "import subprocess; subprocess.run(['sleep', '600'])",
        "!sleep 600",
        "while True: print('x' * 1000)",
        # Results of ten megabytes: an interrupt comes when one is half sent.
        "from IPython.display import HTML, display\nwhile True: display(HTML('x' * 10_000_000))",
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
    with httpx.stream("POST", f"{server.url}/execute", json=body, timeout=120, trust_env=False) as reply:
        assert next(reply.iter_lines())


def leave_the_queue(server, body):
    """Asks for an execution and takes it back once it waits; returns what was heard until the server has understood that."""
    content = json.dumps(body).encode()
    with socket.create_connection(("127.0.0.1", server.port), 120) as connection:
        connection.sendall(b"POST /execute HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(content), content))
        received = connection.recv(4096)
        assert received.startswith(b"HTTP/1.1 200"), received
        connection.shutdown(socket.SHUT_WR)
        return received + b"".join(iter(lambda: connection.recv(4096), b""))


@pytest.mark.parametrize("language, code", [(language, code) for language, codes in ENDLESS.items() for code in codes])
def test_the_code_stops_and_the_state_stays(sandbox, server, language, code):
    context = sandbox.create_code_context(language=language)
    assert sandbox.run_code(KEEP[language], context=context).error is None
    leave_early(server, {"code": code, "context_id": context.id})
    execution = sandbox.run_code(PROOF[language], context=context, timeout=200)
    assert ("".join(execution.logs.stdout), execution.error) == ("1\n", None)
    sandbox.remove_code_context(context)


def test_a_timeout_of_the_sdk(sandbox, context):
    from e2b import TimeoutException

    with pytest.raises(TimeoutException):
        sandbox.run_code("import time; time.sleep(600)", context=context, timeout=1)
    assert sandbox.run_code("1 + 1", context=context, timeout=200).text == "2"


def test_one_who_leaves_the_queue_never_runs(sandbox, server, context):
    gate, running = server.home / "queue-gate", threading.Event()
    waiting = f"import os, time\nprint('on')\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)\n'first'"
    first = []
    run = lambda: first.append(sandbox.run_code(waiting, context=context, on_stdout=lambda _: running.set()))  # noqa: E731
    thread = threading.Thread(target=run)
    thread.start()
    assert running.wait(120)
    assert b"number_of_executions" not in leave_the_queue(server, {"code": "left = 1", "context_id": context.id})
    gate.touch()
    thread.join()
    assert first[0].text == "first"
    assert sandbox.run_code("'left' in globals()", context=context).text == "False"
    gate.unlink()


def test_an_interrupt_between_executions_is_harmless(sandbox, context):
    import os
    import signal

    pid = int(sandbox.run_code("import os\nos.getpid()", context=context).text)
    os.kill(pid, signal.SIGINT)
    assert sandbox.run_code("1 + 1", context=context).text == "2"


def test_code_that_will_not_stop_can_be_restarted(sandbox, server, context):
    stubborn = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: time.sleep(1)"
    leave_early(server, {"code": stubborn, "context_id": context.id})
    sandbox.restart_code_context(context)
    assert sandbox.run_code("1 + 1", context=context, timeout=200).text == "2"


def test_no_interrupt_cuts_an_answer_in_half():
    script = """
import json, os, signal, socket, struct, sys, threading, time
sys.path.insert(0, sys.argv[1])
from sandyard_kernel.wire import Marks, Wire

ours, theirs = socket.socketpair()
wire = Wire(theirs, Marks(b"word", os.open(os.devnull, os.O_WRONLY)))
is_armed, heard, numbers = False, 0, []
end = time.monotonic() + 100

def interrupt(*_):
    global is_armed
    if is_armed:
        # Once that it is heard: another would come out of the test itself.
        is_armed = wire._is_sending
        wire.interrupt()

def shoot():
    while end:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.0001)

def read():
    stream = ours.makefile("rb")
    while head := stream.read(4):
        answer = json.loads(stream.read(struct.unpack(">I", head)[0]))
        assert len(answer["text"]) == 300_000
        numbers.append(answer["number"])

signal.signal(signal.SIGINT, interrupt)
threads = [threading.Thread(target=each) for each in (shoot, read)]
for thread in threads: thread.start()
while heard < 300 and time.monotonic() < end:
    try:
        is_armed = True
        wire.answer({"type": "result", "text": "x" * 300_000})
        is_armed = False
    except KeyboardInterrupt:
        heard += 1
    is_armed = False
end = 0
theirs.shutdown(socket.SHUT_WR)
for thread in threads: thread.join()
assert heard > 0 and numbers and numbers == sorted(numbers), (heard, numbers)
"""
    done = subprocess.run([sys.executable, "-c", script, str(SERVER.parent)], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
