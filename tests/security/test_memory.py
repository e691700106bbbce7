"""Clients that read or send slowly: the server's memory stays within its budget, and others are served meanwhile."""

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from server import Server
from waiting import wait_for

MIB = 1 << 20
# For all callers together; one caller may use a quarter of it.
BUDGET = 128 * MIB
SHARE = BUDGET // 4
# What else grows: connections, threads' stacks, the allocator's own overhead.
SLACK = 96 * MIB
OUTPUT = 8 * MIB
# A hundred of them held 2,008 MiB on a server without a budget; fewer take less time and still hold far more than the share.
READERS = 40
SENDERS = 80
BODY = 15 * MIB


@pytest.fixture(scope="module")
def small():
    """A server with a small budget that asks for credentials."""
    settings = {"SERVER_BUFFER_MEMORY": BUDGET, "LIMITS_SANDBOXES_PER_USER": 0}
    with Server("--auth", "required", **settings) as server:
        yield server


def resident(server):
    """Resident memory of the server, in bytes."""
    lines = Path(f"/proc/{server.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS:"))


def user_of(server, admin, name):
    admin.ok("POST", "/users", {"name": name, "password": f"Right-{name}-1!", "role": "user"})
    return admin.ok("POST", "/keys", {"name": "test", "user": name})["key"]


def begin(server, key, path, body, length=None):
    """Sends a request and reads nothing; the socket. With `length` more is announced than is sent."""
    stream = socket.socket()
    # A small window, so that the answer stays with the server.
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    stream.settimeout(120)
    stream.connect(("127.0.0.1", server.port))
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: {key}\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {length or len(body)}\r\n\r\n"
    )
    stream.sendall(head.encode() + body)
    return stream


def status_of(stream):
    """The status of an answer, whose body is left unread."""
    head = b""
    while b"\r\n" not in head:
        piece = stream.recv(64)
        if not piece:
            return None
        head += piece
    return int(head.split()[1])


def serves_others(api, sandbox):
    assert api.run(sandbox, "echo fine")["stdout"] == "fine\n"
    assert len(api.run(sandbox, "head -c 2000000 /dev/zero | tr '\\0' x", max_output_bytes=4 * MIB)["stdout"]) == 2_000_000
    api.write(sandbox, "/tmp/file", "y" * MIB)
    assert api.read(sandbox, "/tmp/file") == "y" * MIB


def test_slow_readers_hold_no_more_than_their_share(small):
    admin = small.admin()
    slow_key, other_key = user_of(small, admin, "slow-reader"), user_of(small, admin, "reader")
    slow, other = small.api(slow_key), small.api(other_key)
    first_sandbox, second_sandbox = slow.create(), other.create()
    serves_others(other, second_sandbox)
    before = resident(small)
    command = f"head -c {OUTPUT} /dev/zero | tr '\\0' x"
    body = json.dumps({"sandbox_id": first_sandbox, "command": command, "max_output_bytes": OUTPUT}).encode()
    with ExitStack() as stack, ThreadPoolExecutor(READERS) as pool:
        streams = [stack.enter_context(closing(begin(small, slow_key, "/sandboxes/run-command", body))) for _ in range(READERS)]
        statuses = list(pool.map(status_of, streams))
        # Every command has run or was refused before it ran; what is held now is held until its reader leaves.
        assert set(statuses) <= {200, 429}, statuses
        assert 200 in statuses, statuses
        grown = resident(small) - before
        assert grown < SHARE + SLACK, f"{grown // MIB} MiB"
        serves_others(other, second_sandbox)

    def is_served():
        ran = slow.post("/sandboxes/run-command", {"sandbox_id": first_sandbox, "command": command, "max_output_bytes": OUTPUT})
        return ran.status_code == 200 and len(ran.json()["stdout"]) == OUTPUT and not ran.json()["truncated"]

    wait_for(is_served, "the slow caller is served again once its readers are gone", 120)
    for api in (slow, other, admin):
        api.close()


def test_slow_senders_hold_no_more_than_their_share(small):
    admin = small.admin()
    slow_key, other_key = user_of(small, admin, "slow-sender"), user_of(small, admin, "sender")
    slow, other = small.api(slow_key), small.api(other_key)
    first_sandbox, second_sandbox = slow.create(), other.create()
    serves_others(other, second_sandbox)
    before = resident(small)
    body = json.dumps({"sandbox_id": first_sandbox, "path": "/tmp/file", "content": "z" * BODY}).encode()
    part = body[: 12 * MIB]

    def send(_):
        """Sends most of a body; a server that refuses need not take all of it."""
        try:
            return begin(small, slow_key, "/sandboxes/write-file", part, len(body))
        except OSError:
            return None

    with ExitStack() as stack, ThreadPoolExecutor(SENDERS) as pool:
        streams = [stack.enter_context(closing(stream)) for stream in pool.map(send, range(SENDERS)) if stream]
        grown = resident(small) - before
        assert grown < SHARE + SLACK, f"{grown // MIB} MiB"
        serves_others(other, second_sandbox)
        del streams
    content = "z" * BODY

    def is_served():
        return slow.post("/sandboxes/write-file", {"sandbox_id": first_sandbox, "path": "/tmp/file", "content": content}).status_code == 200

    wait_for(is_served, "the slow caller is served again once its senders are gone", 120)
    for api in (slow, other, admin):
        api.close()


def test_output_is_kept_as_asked_for(api, sandbox):
    command = "head -c 3000000 /dev/zero | tr '\\0' x; echo wrong >&2"
    default = api.run(sandbox, command)
    assert (len(default["stdout"]), default["stderr"], default["truncated"]) == (MIB, "wrong\n", True)
    assert default["output"] == default["stdout"] + default["stderr"]
    whole = api.run(sandbox, command, max_output_bytes=OUTPUT)
    assert (len(whole["stdout"]), whole["truncated"]) == (3_000_000, False)
    for wrong in (0, OUTPUT + 1, "much"):
        reply = api.post("/sandboxes/run-command", {"sandbox_id": sandbox, "command": "true", "max_output_bytes": wrong})
        assert reply.status_code == 422 and reply.json()["field"] == "max_output_bytes", reply.text
