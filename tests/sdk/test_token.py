"""An agent with an access token: who may ask, and links signed with it.

Debug mode has no token, so these tests build the SDK's sandbox object as its control plane would have.
"""

import socket
import time

import httpx
import pytest
from e2b import AuthenticationException, ConnectionConfig, Sandbox
from packaging.version import Version

from agent_process import AgentProcess
from conftest import private_directory
from ports import free_port

TOKEN = "a-token-of-the-sandbox"


@pytest.fixture(scope="module")
def guarded():
    """The URL of an agent that asks for the token."""
    port = free_port()
    process = AgentProcess(private_directory(), port, "--token", TOKEN)
    yield f"http://127.0.0.1:{port}"
    process.stop()


def sandbox_with(url, token):
    headers = {"X-Access-Token": token} if token else {}
    config = ConnectionConfig(debug=False, api_key="e2b_" + "0" * 40, sandbox_url=url, extra_sandbox_headers=headers)
    return Sandbox(
        sandbox_id="test", sandbox_domain=None, envd_version=Version("0.6.13"), envd_access_token=token,
        traffic_access_token=None, connection_config=config,
    )  # fmt: skip


@pytest.fixture
def owner(guarded):
    return sandbox_with(guarded, TOKEN)


def test_token_opens_commands_and_files(owner):
    assert owner.commands.run("echo in").stdout == "in\n"
    owner.files.write("guarded.txt", "kept")
    assert owner.files.read("guarded.txt") == "kept"


@pytest.mark.parametrize("token", [None, "wrong", TOKEN + "x", TOKEN[:-1]])
def test_without_the_token_nothing_is_allowed_but_health(guarded, token):
    other_user = sandbox_with(guarded, token)
    assert other_user.is_running() is True
    with pytest.raises(AuthenticationException):
        other_user.commands.list()
    with pytest.raises(AuthenticationException):
        other_user.commands.run("true")
    with pytest.raises(AuthenticationException):
        other_user.files.list("/")
    with pytest.raises(AuthenticationException):
        other_user.files.read("/etc/hostname")


@pytest.mark.parametrize("user", [None, "user", "root"])
@pytest.mark.parametrize("expires_in", [None, 120])
def test_signed_links_work_without_the_token(owner, user, expires_in):
    up = owner.upload_url("/tmp/signed link.txt", user=user, use_signature_expiration=expires_in)
    assert httpx.post(up, files={"file": b"signed"}, timeout=120).status_code == 200
    down = owner.download_url("/tmp/signed link.txt", user=user, use_signature_expiration=expires_in)
    reply = httpx.get(down, timeout=120)
    assert (reply.status_code, reply.content) == (200, b"signed")
    owner.files.remove("/tmp/signed link.txt", user="root")


def test_signature_is_for_one_path_one_user_and_one_direction(owner):
    owner.files.write("/tmp/one", "1")
    down = owner.download_url("/tmp/one", user="user", use_signature_expiration=120)
    assert httpx.get(down, timeout=120).status_code == 200
    altered = [
        down.replace("%2Ftmp%2Fone", "%2Fetc%2Fpasswd").replace("/tmp/one", "/etc/passwd"),
        down.replace("username=user", "username=root"),
        down.replace("signature=v1_", "signature=v1_A"),
        down.replace("signature_expiration=", "signature_expiration=9"),
    ]
    assert [httpx.get(url, timeout=120).status_code for url in altered] == [401] * len(altered)
    assert httpx.post(down, files={"file": b"x"}, timeout=120).status_code == 401
    assert owner.files.read("/tmp/one") == "1"


def test_expired_signature_is_refused_by_name(owner):
    owner.files.write("/tmp/late", "x")
    url = owner.download_url("/tmp/late", use_signature_expiration=-int(time.time() - 1))
    reply = httpx.get(url, timeout=120)
    assert (reply.status_code, reply.json()) == (401, {"code": 401, "message": "signature is already expired"})


def test_refusal_before_the_body_came_does_not_break_the_next_request(guarded):
    host, _, port = guarded.removeprefix("http://").rpartition(":")
    head = "POST /filesystem.Filesystem/ListDir HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n"
    with socket.create_connection((host, int(port)), timeout=0.5) as connection:
        reply = b""
        connection.sendall(head.encode())
        try:
            # An agent that does not wait for the body answers here; one that does, after the body.
            reply = connection.recv(65536)
        except TimeoutError:
            pass
        connection.settimeout(120)
        connection.sendall(b"{}")
        reply = reply or connection.recv(65536)
        assert reply.startswith(b"HTTP/1.1 401 ")
        if b"connection: close" in reply.lower():
            return  # Said in time, so a client opens another one.
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 204 ")
