"""Requests that nobody should send."""

import contextlib
import json
import socket
import struct

import pytest
from conftest import sandbox_at


def raw(server, data, limit=65536):
    """Sends bytes and reads what comes until the server closes.

    One who refuses does not read the rest; to close then resets the connection, and that is no less an end.
    """
    with socket.create_connection(("127.0.0.1", server.port), 120) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(data)
        received = b""
        with contextlib.suppress(ConnectionError):
            while len(received) < limit and (more := connection.recv(4096)):
                received += more
        return received


def status(reply):
    return int(reply.split(b" ", 2)[1])


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"1", b"\xff\xfe", b"[" * 100_000, b'{"code": NaN', b'"text"'])
def test_bodies_that_are_no_request(http, body):
    reply = http.post("/execute", content=body)
    assert reply.status_code == 400
    assert set(reply.json()) == {"code", "message"}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"code": None},
        {"code": 1},
        {"code": ["x"]},
        {"code": "1", "language": 5},
        {"code": "1", "context_id": {}},
        {"code": "1", "env_vars": ["A"]},
        {"code": "1", "env_vars": "x"},
        {"code": "1", "env_vars": {"A": 1}},
        {"code": "1", "env_vars": {"": "x"}},
        {"code": "1", "env_vars": {"A=B": "x"}},
        {"code": "1", "env_vars": {"A": "\0"}},
    ],
)
def test_fields_of_the_wrong_kind(http, fields):
    reply = http.post("/execute", json=fields)
    assert (reply.status_code, reply.json()["code"]) == (400, 400)


@pytest.mark.parametrize("fields", [{"cwd": 1}, {"cwd": ["/"]}, {"language": {"a": 1}}])
def test_contexts_of_the_wrong_kind(http, fields):
    assert http.post("/contexts", json=fields).status_code == 400


@pytest.mark.parametrize(
    "method, path", [("GET", "/execute"), ("PUT", "/contexts"), ("POST", "/health"), ("GET", "/contexts/x/restart")]
)
def test_other_methods(http, method, path):
    assert http.request(method, path).status_code == 405


def test_other_routes(http):
    for path in ("/", "/nothing", "/contexts/a/b/c", "/../etc/passwd", "/execute/x"):
        assert http.get(path).status_code == 404


def test_a_body_that_is_too_large(server):
    head = b"POST /execute HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (1 << 40)
    assert status(raw(server, head)) == 413
    head = b"POST /execute HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n7fffffffffff\r\n"
    assert status(raw(server, head)) == 413


@pytest.mark.parametrize(
    "data, code",
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nname : x\r\n\r\n", 400),
        (b"POST /execute HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST /execute HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"POST /execute HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"POST /execute HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 400),
        (b"POST /execute HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"POST /execute HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n", 400),
        (b"GET /health HTTP/1.1\r\nx: " + b"y" * 100_000 + b"\r\n\r\n", 431),
    ],
)
def test_what_is_not_http(server, data, code):
    assert status(raw(server, data)) == code


def test_chunks_and_keeping_the_connection(server):
    chunked = b"POST /contexts HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunked += b'3\r\n{"l\r\n1d;ext=1\r\nanguage": "no-such-language"}\r\n0\r\nT: x\r\n\r\n'
    reply = raw(server, chunked + b"GET /health HTTP/1.1\r\nConnection: close\r\n\r\n")
    assert reply.count(b"HTTP/1.1 ") == 2
    assert b"no-such-language" in reply and reply.endswith(b'{"status": "ok"}')


def test_a_slow_head_times_out_without_affecting_others(own_server):
    slow = [socket.create_connection(("127.0.0.1", own_server.port), 120) for _ in range(200)]
    for connection in slow:
        connection.sendall(b"POST /execute HTTP/1.1\r\nHost")
    assert sandbox_at(own_server).run_code("1 + 1", timeout=120).text == "2"
    assert slow[0].recv(4096).startswith(b"HTTP/1.1 408")
    for connection in slow:
        connection.close()


def test_connections_that_are_torn_away(own_server):
    body = json.dumps({"code": "while True: print('x' * 1000)"}).encode()
    request = b"POST /execute HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    for _ in range(10):
        connection = socket.create_connection(("127.0.0.1", own_server.port), 120)
        connection.sendall(request)
        connection.recv(1000)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
    assert sandbox_at(own_server).run_code("1 + 1", timeout=200).text == "2"


def test_code_that_attacks_the_conversation(sandbox, context):
    """Answers of its own making end the kernel at worst, never the server."""
    code = "import gc, socket\nfor each in gc.get_objects():\n"
    code += "    if isinstance(each, socket.socket) and each.family == socket.AF_UNIX:\n"
    code += "        try: each.send(b'\\xff' * 64)\n        except OSError: pass\n"
    sandbox.run_code(code, context=context)
    sandbox.restart_code_context(context)
    assert sandbox.run_code("1 + 1", context=context).text == "2"


def test_bash_that_closes_everything(sandbox):
    sandbox.run_code('for n in 1 2 3 8 9; do eval "exec $n>&-"; done', language="bash")
    assert "".join(sandbox.run_code("echo on", language="bash").logs.stdout) == "on\n"
