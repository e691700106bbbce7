"""Output as it happens: server-sent events, WebSockets, terminals, logs, events."""

import json
import threading

import httpx
import pytest
from websockets.exceptions import InvalidStatus

from api import describe_reply
from pauses import NOW, pauses
from sockets import Socket
from waiting import wait_for


def events(reply):
    """Server-sent events as (name, data)."""
    name, data = "message", []
    for line in reply.iter_lines():
        if line.startswith("event:"):
            name = line[6:].strip()
        elif line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            yield name, json.loads("\n".join(data))
            name, data = "message", []


def stream(api, method, path, **options):
    return httpx.stream(method, api.url + path, timeout=120, trust_env=False, **options)


def test_a_commands_output_comes_as_it_is_written(api, shared):
    """The second line is written only when the first has been seen here."""
    command = "echo first; until test -e /tmp/seen-first; do sleep 0.05; done; echo second >&2; exit 4"
    body = {"sandbox_id": shared, "command": command}
    with stream(api, "POST", "/sandboxes/run-command-stream", json=body) as reply:
        assert reply.headers["content-type"].startswith("text/event-stream"), reply.read()
        seen = []
        for name, data in events(reply):
            seen.append((name, data))
            if name == "stdout":
                api.write(shared, "/tmp/seen-first", "")
    assert [name for name, _ in seen] == ["start", "stdout", "stderr", "exit"]
    start, out, err, end = (data for _, data in seen)
    assert start["pid"] > 0
    assert (out["text"], err["text"], end["exit_code"]) == ("first\n", "second\n", 4)


def test_run_command_streams_events_on_request(api, shared):
    body, headers = {"sandbox_id": shared, "command": "echo x"}, {"Accept": "text/event-stream"}
    with stream(api, "POST", "/sandboxes/run-command", json=body, headers=headers) as reply:
        assert [name for name, _ in events(reply)] == ["start", "stdout", "exit"]


def test_a_client_that_goes_takes_its_command_with_it(api, sandbox):
    body = {"sandbox_id": sandbox, "command": "sleep 4343"}
    with stream(api, "POST", "/sandboxes/run-command-stream", json=body) as reply:
        assert next(events(reply))[0] == "start"
    wait_for(lambda: api.run(sandbox, "pgrep -f '^sleep 4343'")["exit_code"] == 1, "the command is gone")


def socket_to(api, path):
    return Socket(api.url.replace("http", "ws", 1) + path)


def test_a_command_over_websocket_takes_input(api, shared):
    with socket_to(api, f"/sandboxes/{shared}/exec") as socket:
        socket.send(json.dumps({"command": "read line; echo got $line; cat; echo end >&2; exit 5"}))
        assert json.loads(socket.recv())["type"] == "start"
        socket.send(b"one\n")
        out, err, code = b"", b"", None
        while b"got one\n" not in out:
            out += channel(socket.recv(), 1)
        socket.send(b"two")
        socket.send(json.dumps({"type": "eof"}))
        while code is None:
            message = socket.recv()
            if isinstance(message, str):
                code = json.loads(message)["exit_code"]
            elif message[0] == 1:
                out += message[1:]
            else:
                err += message[1:]
    assert (out, err, code) == (b"got one\ntwo", b"end\n", 5)


def channel(message, number):
    assert message[0] == number
    return message[1:]


def test_a_signal_over_websocket_ends_a_command(api, shared):
    with socket_to(api, f"/sandboxes/{shared}/exec") as socket:
        socket.send(json.dumps({"argv": ["sleep", "300"]}))
        assert json.loads(socket.recv())["type"] == "start"
        socket.send(json.dumps({"type": "signal", "signal": "SIGTERM"}))
        assert json.loads(socket.recv()) == {"type": "exit", "exit_code": 143}


def test_a_terminal_over_websocket(api, shared):
    with socket_to(api, f"/sandboxes/{shared}/pty?cols=100&rows=30") as socket:
        assert json.loads(socket.recv())["type"] == "start"
        socket.send(b"stty size; [ -t 0 ] && echo tty-$((40+2))\n")
        seen = until(socket, b"30 100")
        until(socket, b"tty-42", seen)
        socket.send(json.dumps({"type": "resize", "cols": 132, "rows": 43}))
        socket.send(b"stty size\n")
        until(socket, b"43 132")
        socket.send(b"exit 6\n")
        while not isinstance(message := socket.recv(), str):
            pass
        assert json.loads(message) == {"type": "exit", "exit_code": 6}


def test_a_terminal_without_bash_has_sh(api, sandbox):
    api.run(sandbox, "rm /bin/bash", user="root")
    for query in ("", "?command=exec+sh"):
        with socket_to(api, f"/sandboxes/{sandbox}/pty{query}") as socket:
            assert json.loads(socket.recv())["type"] == "start"
            socket.send(b"echo tty-$((40+2)); exit\n")
            until(socket, b"tty-42")


def until(socket, text, seen=b""):
    """What the terminal showed up to a text; it may show several at once."""
    while text not in seen:
        message = socket.recv()
        assert isinstance(message, bytes), message
        seen += message
    return seen


def test_websockets_of_foreign_origins_are_refused(api, shared):
    server = (api.http.base_url.host, api.http.base_url.port)
    for host, origin in (("localhost", "http://evil.example"), ("localhost", "null"), ("evil.example", None)):
        with pytest.raises(InvalidStatus, match="403"):
            Socket(f"ws://{host}/sandboxes/{shared}/exec", server, origin=origin)
    with Socket(f"ws://localhost/sandboxes/{shared}/exec", server, origin="http://localhost"):
        pass


def test_a_plain_request_to_a_websocket_route_says_so(api, shared):
    for path in ("exec", "pty"):
        reply = api.get(f"/sandboxes/{shared}/{path}")
        assert reply.status_code == 400 and "WebSocket" in reply.json()["detail"], describe_reply(reply)


def test_logs_are_kept_and_followed(api, sandbox):
    api.run(sandbox, "echo before")
    lines = lambda: [line["text"].strip() for line in api.ok("GET", f"/sandboxes/{sandbox}/logs")["logs"]]  # noqa: E731
    wait_for(lambda: "before" in lines(), "what it wrote is in the log")
    with stream(api, "GET", f"/sandboxes/{sandbox}/logs", params={"follow": "true", "tail": 10}) as reply:
        texts = (data["text"].strip() for name, data in events(reply) if name == "log")
        assert "before" in take_until(texts, "before")
        runner = threading.Thread(target=api.run, args=(sandbox, "echo after >&2"))
        runner.start()
        assert "after" in take_until(texts, "after")
        runner.join()


def take_until(texts, expected):
    taken = []
    for text in texts:
        taken.append(text)
        if text == expected:
            return taken
    raise AssertionError(f"{expected!r} never came: {taken}")


def test_events_are_followed_and_go_on_after_the_last_seen(api, sandbox):
    path = f"/sandboxes/{sandbox}/events"
    with stream(api, "GET", path, params={"follow": "true"}) as reply:
        kinds = (data["kind"] for _, data in events(reply))
        assert next(kinds) == "created"
        api.pause(sandbox)
        take_until(kinds, "paused")
    last = api.events(sandbox)[-1]["seq"]
    api.ok("POST", f"/sandboxes/{sandbox}/resume")
    with stream(api, "GET", path, params={"follow": "true"}, headers={"Last-Event-ID": str(last)}) as reply:
        assert next(events(reply))[1]["kind"] == "woken"


def test_an_open_stream_is_activity(api, make):
    sandbox = make(timeout=2)
    body = {"sandbox_id": sandbox, "command": f"{NOW}; sleep 5; {NOW}"}
    with stream(api, "POST", "/sandboxes/run-command-stream", json=body) as reply:
        begin, end = "".join(data["text"] for name, data in events(reply) if name == "stdout").split()
    assert pauses(api, sandbox, begin, end) == []
