"""Links to ports: who may follow them, and that what passes through stays what it was."""

import functools
import socket
from urllib.parse import urlsplit

import httpx
import pytest
import websockets.sync.client
from conftest import config
from daytona import Daytona, DaytonaBadRequestError, SessionExecuteRequest
from daytona_toolbox_api_client import PortApi
from running import TIMEOUT, Counterpart
from waiting import wait_for

get = functools.partial(httpx.get, timeout=TIMEOUT)

# Answers any upgrade, and says what it got when the visitor has said all; else it streams line by line, each when asked for.
_SERVER = r"""
import base64, hashlib, socket, threading

def serve(visitor):
    head = b""
    while b"\r\n\r\n" not in head:
        head += visitor.recv(65536)
    words = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
    if b"websocket" == words.get(b"upgrade"):
        key = [line.split(b": ")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key")][0]
        accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
        visitor.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n" + b"\x81\x05hello")
        visitor.recv(65536)
    elif b"upgrade" in words:
        visitor.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: raw\r\nConnection: Upgrade\r\n\r\n")
        got = b""
        while piece := visitor.recv(65536):
            got += piece
        visitor.sendall(b"got " + str(len(got)).encode())
    else:
        visitor.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Saw: " + words.get(b"x-mine", b"-") +
                        b"\r\nX-Token: " + words.get(b"x-daytona-preview-token", b"none") + b"\r\n\r\n5\r\nfirst\r\n")
        while not __import__("os").path.exists("/tmp/go"):
            __import__("time").sleep(0.01)
        visitor.sendall(b"6\r\nsecond\r\n0\r\n\r\n")
    visitor.close()

listener = socket.create_server(("0.0.0.0", 4000))
while True:
    threading.Thread(target=serve, args=[listener.accept()[0]], daemon=True).start()
"""


@pytest.fixture(scope="module")
def served(sandbox):
    """A sandbox with a page on port 3000 and the server above on 4000."""
    sandbox.fs.upload_file(_SERVER.encode(), "server.py")
    sandbox.fs.upload_file(b"a page", "site/index.html")
    sandbox.process.create_session("servers")
    start = "python3 server.py & cd site && exec python3 -m http.server 3000"
    sandbox.process.execute_session_command("servers", SessionExecuteRequest(command=start, run_async=True))
    ports = PortApi(sandbox._toolbox_api)
    wait_for(lambda: {3000, 4000} <= set(ports.get_ports().ports), "both listen")
    assert (ports.is_port_in_use(3000).is_in_use, ports.is_port_in_use(3999).is_in_use) == (True, False)
    yield sandbox
    sandbox.process.delete_session("servers")


def with_token(link):
    return {"x-daytona-preview-token": link.token}


def test_only_with_the_token(served):
    link = served.get_preview_link(3000)
    assert get(link.url).status_code == 401
    assert get(link.url, headers={"x-daytona-preview-token": "wrong"}).status_code == 401
    assert get(link.url, headers=with_token(link)).text == "a page"
    assert get(link.url, params={"DAYTONA_SANDBOX_AUTH_KEY": link.token}).text == "a page"


def test_another_host_leads_nowhere(served):
    link = served.get_preview_link(3000)
    assert get(link.url, headers={**with_token(link), "Host": "elsewhere.test"}).status_code == 404


def test_a_public_port_needs_no_credentials(make):
    sandbox = make(public=True)
    sandbox.process.exec("echo everybody >index.html; python3 -m http.server 3000 >/dev/null 2>&1 &")
    link = sandbox.get_preview_link(3000)
    wait_for(lambda: get(link.url).status_code == 200, "it is served")
    assert get(link.url).text == "everybody\n"
    sandbox.set_public(False)
    assert get(link.url).status_code == 401


def test_signed_links_need_nothing_and_expire(served):
    signed = served.create_signed_preview_url(3000, expires_in_seconds=600)
    assert get(signed.url).text == "a page"
    standard = served.get_preview_link(3000)
    assert get(standard.url, headers={"x-daytona-preview-token": signed.token}).status_code == 401
    served.expire_signed_preview_url(3000, signed.token)
    assert get(signed.url).status_code == 401
    short = served.create_signed_preview_url(3000, expires_in_seconds=1)
    wait_for(lambda: get(short.url).status_code == 401, "it expires")


def test_nothing_listens(served):
    link = served.get_preview_link(3999)
    assert get(link.url, headers=with_token(link)).status_code == 502


def test_ports_that_are_none(served):
    for port in (0, 65536, 2280):
        with pytest.raises(DaytonaBadRequestError):
            served.get_preview_link(port)


def test_answers_are_streamed(served):
    link = served.get_preview_link(4000)
    served.process.exec("rm -f /tmp/go")
    with httpx.stream("GET", link.url, headers={**with_token(link), "X-Mine": "passes"}, timeout=TIMEOUT) as answer:
        assert (answer.headers["x-saw"], answer.headers["x-token"]) == ("passes", "none")
        pieces = answer.iter_raw()
        assert next(pieces) == b"first"
        served.process.exec("touch /tmp/go")
        assert b"".join(pieces) == b"second"


def test_websockets_pass(served):
    link = served.get_preview_link(4000)
    url = link.url.replace("http", "ws", 1)
    options = {"additional_headers": with_token(link), "proxy": None, "open_timeout": TIMEOUT}
    with websockets.sync.client.connect(url, **options) as connection:
        assert connection.recv(timeout=TIMEOUT) == "hello"


def test_an_upgraded_connection_may_be_half_closed(served):
    link = served.get_preview_link(4000)
    location = urlsplit(link.url)
    with socket.create_connection((location.hostname, location.port), timeout=TIMEOUT) as visitor:
        visitor.sendall(
            f"GET / HTTP/1.1\r\nHost: {location.netloc}\r\nConnection: Upgrade\r\nUpgrade: raw\r\n"
            f"x-daytona-preview-token: {link.token}\r\n\r\n".encode()
        )
        assert b" 101 " in visitor.recv(65536).split(b"\r\n")[0]
        visitor.sendall(b"x" * 500_000)
        visitor.shutdown(socket.SHUT_WR)
        assert b"".join(iter(lambda: visitor.recv(65536), b"")) == b"got 500000"


def test_a_token_ends_with_the_run(make):
    sandbox = make()
    before = sandbox.get_preview_link(3000)
    sandbox.stop()
    assert get(before.url, headers=with_token(before)).status_code == 400
    sandbox.start()
    after = sandbox.get_preview_link(3000)
    assert before.token != after.token
    assert get(after.url, headers=with_token(before)).status_code == 401
    assert get(after.url, headers=with_token(after)).status_code == 502


def test_links_below_a_domain():
    """As the cloud has them: `{port}-{id}` or `{port}-{token}` below a name that leads to the proxy."""
    with Counterpart("--preview-domain", "previews.test") as counterpart:
        daytona = Daytona(config(counterpart))
        sandbox = daytona.create()
        link, signed = sandbox.get_preview_link(3000), sandbox.create_signed_preview_url(3000)
        name, port = urlsplit(link.url).hostname, urlsplit(link.url).port
        assert name == f"3000-{sandbox.id}.previews.test"
        assert urlsplit(signed.url).hostname == f"3000-{signed.token}.previews.test"

        def visit(host, **headers):
            return get(f"http://127.0.0.1:{port}/", headers={"Host": host, **headers}).status_code

        assert visit(f"{name}:{port}") == 401
        assert visit(f"{name}:{port}", **with_token(link)) == 502
        assert visit(f"{urlsplit(signed.url).hostname}:{port}") == 502
        assert visit(f"3001-{signed.token}.previews.test:{port}") == 401
        assert visit(f"3000-unknown.previews.test:{port}", **with_token(link)) == 404
