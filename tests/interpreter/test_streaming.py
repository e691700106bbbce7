"""What arrives, when, and in which order."""

import contextlib
import json
import os
import signal
import time

import pytest


def lines(http, body):
    with http.stream("POST", "/execute", json=body) as reply:
        assert reply.status_code == 200
        for line in reply.iter_lines():
            yield json.loads(line)


def together(events):
    """Kinds and texts. What is printed may come in pieces, as a process that waits for its turn writes it."""
    outcome = []
    for event in events:
        kind, text = event["type"], event.get("text")
        if kind in ("stdout", "stderr") and outcome and outcome[-1][0] == kind:
            text = outcome.pop()[1] + text
        outcome.append((kind, text))
    return outcome


def test_the_order(http, context):
    code = "import sys\nprint('a')\ndisplay(1)\nprint('b')\ndisplay(2)\nprint('c')\n3"
    outcome = together(lines(http, {"code": code, "context_id": context.id}))
    # A sign of life may come in between when nothing else does for long.
    assert [each for each in outcome if each[0] != "keepalive"] == [
        ("number_of_executions", None),
        ("stdout", "a\n"),
        ("result", "1"),
        ("stdout", "b\n"),
        ("result", "2"),
        ("stdout", "c\n"),
        ("result", "3"),
        ("end_of_execution", None),
    ]


def test_the_order_when_the_server_lags_behind(http, context, server):
    """The server stands still while the code prints and shows: what it reads then is all there at once."""
    gate = server.home / "order-gate"
    code = (
        f"import os, sys, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)\n"
        "for number in range(20):\n"
        "    print('out', number)\n    display(number)\n    print('err', number, file=sys.stderr)\n    display(-number)\n"
        f"os.rename({str(gate)!r}, {str(gate) + '-passed'!r})"
    )
    outcome = lines(http, {"code": code, "context_id": context.id})
    assert next(outcome)["type"] == "number_of_executions"
    with standing_still(server.pid):
        gate.touch()
        wait_for(lambda: not gate.exists())
    outcome = together(outcome)
    expected = []
    for number in range(20):
        expected += [("stdout", f"out {number}\n"), ("result", f"{number}")]
        expected += [("stderr", f"err {number}\n"), ("result", f"{-number}")]
    assert [each for each in outcome if each[0] != "keepalive"] == [*expected, ("end_of_execution", None)]
    gate.with_name("order-gate-passed").unlink()


@contextlib.contextmanager
def standing_still(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_results_beside_a_child_that_never_stops_printing(http, context, server):
    sign = server.home / "has-printed"
    printer = f"while :; do echo y; : > {sign}; done"
    code = (
        f"import os, subprocess, time\nchild = subprocess.Popen(['sh', '-c', {printer!r}])\n"
        f"while not os.path.exists({str(sign)!r}): time.sleep(0.01)\nfor number in range(5): display(number)\n"
        "child.kill(); child.wait()\nprint('end')"
    )
    outcome = list(lines(http, {"code": code, "context_id": context.id}))
    assert [event["text"] for event in outcome if event["type"] == "result"] == ["0", "1", "2", "3", "4"]
    printed = "".join(event["text"] for event in outcome if event["type"] == "stdout")
    assert printed.endswith("y\nend\n") and set(printed) == set("y\nend")
    sign.unlink()


def test_a_result_that_cannot_be_sent_holds_nothing_back(http, context, server):
    gate = server.home / "failed-gate"
    code = (
        "import os, time\nloop = {}\nloop['loop'] = loop\n"
        "class Talker:\n    def __str__(self):\n        display('from within')\n        return 'talker'\n"
        "try: display({'application/json': loop}, raw=True)\nexcept Exception as error: print(type(error).__name__)\n"
        "display({'application/json': Talker()}, raw=True)\n"
        f"while not os.path.exists({str(gate)!r}): time.sleep(0.01)"
    )
    printed = ""
    for event in lines(http, {"code": code, "context_id": context.id}):
        if event["type"] == "stdout":
            printed += event["text"]
            gate.touch()
        assert event["type"] != "error", event
    assert printed
    gate.unlink()


def test_results_of_code_that_prints_elsewhere(http, context, server):
    """No mark must get into a file that the code has put in the place of its output."""
    location = server.home / "elsewhere"
    code = (
        f"import os, sys\nkept = os.dup(1)\nfile = os.open({str(location)!r}, os.O_WRONLY | os.O_CREAT)\nos.dup2(file, 1)\n"
        "print('there')\ndisplay(1)\nos.dup2(kept, 1)\nprint('here')"
    )
    outcome = together(lines(http, {"code": code, "context_id": context.id}))
    assert [each for each in outcome if each[0] in ("stdout", "result")] == [("result", "1"), ("stdout", "here\n")]
    assert location.read_bytes() == b"there\n"
    location.unlink()


def test_output_comes_while_the_code_runs(http, context, server):
    gate = server.home / "gate"
    code = (
        f"import os, time\nprint('first', end='')\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)\nprint('second')"
    )
    seen = []
    for event in lines(http, {"code": code, "context_id": context.id}):
        if event["type"] == "stdout":
            seen.append(event["text"])
            gate.touch()
    assert seen[0] == "first" and "".join(seen) == "firstsecond\n"
    gate.unlink()


def test_times_are_nanoseconds(http, context):
    before = time.time_ns()
    events = [each for each in lines(http, {"code": "print(1)", "context_id": context.id}) if each["type"] == "stdout"]
    assert events and all(before < event["timestamp"] < time.time_ns() for event in events)


def test_signs_of_life_while_it_is_silent(http, context, server):
    gate = server.home / "silent-gate"
    code = f"import os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)"
    kinds = []
    for event in lines(http, {"code": code, "context_id": context.id}):
        kinds.append(event["type"])
        if "number_of_executions" in kinds and kinds[-1] == "keepalive":
            gate.touch()
    gate.unlink()
    assert [kind for kind in kinds if kind != "keepalive"] == ["number_of_executions", "end_of_execution"]


def test_callbacks_of_the_sdk(sandbox, context):
    out, bad, results, errors = [], [], [], []
    code = "import sys\nprint('out')\nprint('err', file=sys.stderr)\ndisplay(1)\n1/0"
    sandbox.run_code(
        code,
        context=context,
        on_stdout=lambda message: out.append(message.line),
        on_stderr=lambda message: bad.append(message.line),
        on_result=lambda result: results.append(result.text),
        on_error=lambda error: errors.append(error.name),
    )
    assert ("".join(out), "".join(bad), results, errors) == ("out\n", "err\n", ["1"], ["ZeroDivisionError"])


@pytest.mark.parametrize(
    "language, code", [("python", "for _ in range(100_000): print('x' * 99)"), ("bash", "yes | head -c 10000000")]
)
def test_ten_megabytes(sandbox, language, code):
    execution = sandbox.run_code(code, language=language)
    assert sum(map(len, execution.logs.stdout)) == 10_000_000
    assert execution.error is None


def test_a_slow_reader_slows_the_code_not_the_memory(http, context, server):
    from processes import memory_bytes

    body = {"code": "for _ in range(2000): print('x' * 100_000)", "context_id": context.id}
    with http.stream("POST", "/execute", json=body) as reply:
        pieces = reply.iter_raw()
        next(pieces)
        time.sleep(2)
        assert memory_bytes(server.pid, "VmHWM") < 150 * 1024 * 1024
        rest = sum(map(len, pieces))
    assert rest > 200_000_000


@pytest.mark.parametrize("language", ["python", "javascript", "bash"])
def test_text_of_every_kind(sandbox, language):
    text = "ü 🎉 \u2028 \u0085 \u200b\t\r end"
    code = {
        "python": f"print({text!r})",
        "javascript": f"console.log({json.dumps(text)})",
        "bash": f"printf '%s\\n' '{text}'",
    }[language]
    assert "".join(sandbox.run_code(code, language=language).logs.stdout) == text + "\n"


def test_bytes_that_are_no_text(sandbox, context):
    code = "import os\nos.write(1, b'\\xff\\xfe' + 'ü'.encode()[:1])\nos.write(1, 'ü'.encode()[1:] + b'\\n\\xc3')"
    printed = "".join(sandbox.run_code(code + "\nNone", context=context).logs.stdout)
    assert printed == "\ufffd\ufffdü\n\ufffd"
