"""Each exception class the SDK documents, raised by the situation it is meant for."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import e2b
import httpx
import pytest

import mode
import surface
from features import NO_RETRIES, Busy, NotRunning
from server import Server
from tenants import Tenant

# These start servers of their own, which speak plain HTTP.
pytestmark = pytest.mark.plain

# Raised by a situation that another file is about.
REMOTE = {
    "CommandExitException": "test_commands.py",
    "GitAuthException": "test_git.py",
    "GitUpstreamException": "test_git.py",
    "VolumeException": "test_volumes.py",
    "VolumeNotFoundException": "test_volumes.py",
    "VolumePathNotFoundException": "test_volumes.py",
    "SecretException": "test_secrets.py",
    "SandboxUnreachableException": "test_streams.py",
}

# Never raised with this server.
NEVER = {
    "BuildException": "building templates is not part of the server yet",
    "FileUploadException": "building templates is not part of the server yet",
    "DockerfileSyntaxError": "building templates is not part of the server yet",
    "TemplateException": "raised for agents older than 0.1.0; every sandbox here has the newest",
    "GuestUnresponsiveException": "raised when a pause with memory cannot be resumed; here it always can",
    "SecretNotFoundException": "E2B's secrets are not offered, see test_secrets.py",
}


def test_every_exception_has_its_situation():
    here = Path(__file__).read_text()
    for name in surface.exceptions():
        if name in NEVER:
            continue
        text = (Path(__file__).parent / REMOTE[name]).read_text() if name in REMOTE else here
        parts = (f"e2b.{name}", name, ALIASES.get(name, name))
        assert any(f"raises({word}" in text for word in parts), f"{name} is never raised"


# The names these classes have here, because older SDKs have no class of their own for them.
ALIASES = {"SandboxNotRunningException": "NotRunning", "ServiceBusyException": "Busy"}


@pytest.fixture(scope="session")
def tight():
    """A server with room for two sandboxes, one for each user, and little disk in each."""
    limits = {"LIMITS_SANDBOXES": 2, "LIMITS_SANDBOXES_PER_USER": 1, "LIMITS_DISK": "48m"}
    with Server("--ready", "0", **limits) as server:
        yield server


@pytest.fixture
def tenants(tight, mark):
    """Makes users of that server; their sandboxes are gone after the test."""
    created = []

    def tenant(name):
        created.append(Tenant(tight, f"{name}-{mark}"))
        return created[-1]

    yield tenant
    admin = tight.admin()
    for sandbox in admin.all():
        admin.remove(sandbox["sandbox_id"])
    admin.close()


# --- the sandbox


def test_sandbox_that_is_not_there(half):
    with pytest.raises(e2b.SandboxNotFoundException):
        half.Sandbox.connect("nosuchsandbox")
    with pytest.raises(e2b.SandboxNotFoundException):
        half.Sandbox.get_info("nosuchsandbox")


def test_sandbox_that_runs_no_more(fresh_sandbox):
    fresh_sandbox.kill()
    for call in (
        lambda: fresh_sandbox.commands.run("true"),
        lambda: fresh_sandbox.files.read("x"),
        lambda: fresh_sandbox.files.write("x", "y"),
        lambda: fresh_sandbox.files.watch_dir("/", **({"on_event": print} if fresh_sandbox.is_async else {})),
        lambda: fresh_sandbox.pty.create(e2b.PtySize(24, 80), **({"on_data": print} if fresh_sandbox.is_async else {})),
    ):
        with pytest.raises(NotRunning) as raised:
            call()
        assert isinstance(raised.value, e2b.TimeoutException)


def test_anything_else_that_is_wrong_with_one(half):
    with pytest.raises(e2b.SandboxException) as raised:
        half.Sandbox.create("no such template/at:all")
    assert "None" not in str(raised.value), "the answer has a message"


# --- what is in it


def test_process_that_is_not_there(sandbox):
    with pytest.raises(e2b.NotFoundException):
        sandbox.commands.connect(4_000_000)


def test_file_that_is_not_there(sandbox):
    with pytest.raises(e2b.FileNotFoundException):
        sandbox.files.read("/no/such/file")


def test_argument_that_makes_no_sense(sandbox):
    with pytest.raises(e2b.InvalidArgumentException):
        sandbox.commands.run("true", cwd="/no/such/directory")
    with pytest.raises(e2b.InvalidArgumentException):
        sandbox.files.read("/etc")


def test_disk_that_is_full(half, tenants):
    sandbox = half.client(**tenants("full").connection).Sandbox.create()
    with pytest.raises(e2b.NotEnoughSpaceException):
        sandbox.files.write("big", b"x" * 80 * 1024 * 1024)
    assert sandbox.commands.run("echo still usable").exit_code == 0
    sandbox.files.remove("big")
    sandbox.files.write("small", "fits again")


# --- time


def test_command_that_takes_too_long(sandbox):
    with pytest.raises(e2b.TimeoutException):
        sandbox.commands.run("sleep 1000", timeout=1)


def test_answer_that_takes_too_long(half, sandbox):
    with pytest.raises(e2b.TimeoutException):
        # The SDK waits for a millisecond at least, in which little could be told.
        sandbox.files.list("/usr", depth=3, request_timeout=0.00001)


# --- the caller


@pytest.mark.parametrize("wrong", ["e2b_" + "0" * 40, "e2b_" + "f" * 40])
def test_wrong_key(half, server, wrong):
    client = half.client(**mode.current.connection(server, wrong))
    for call in (client.Sandbox.create, client.Sandbox.list().next_items, client.Volume.list):
        with pytest.raises(e2b.AuthenticationException):
            call()


def test_no_key_at_all(server):
    """The SDK always sends one, so this uses a plain client."""
    reply = httpx.get(f"{server.e2b_url}/v2/sandboxes", timeout=120, trust_env=False)
    assert reply.status_code == 401
    assert reply.json().keys() == {"code", "message"} and reply.json()["code"] == 401


def test_revoked_key(half, server, mark):
    tenant = Tenant(server, mark)
    client = half.client(**tenant.connection)
    sandbox = client.Sandbox.create()
    tenant.revoke()
    with pytest.raises(e2b.AuthenticationException):
        sandbox.get_info()
    with pytest.raises(e2b.AuthenticationException):
        client.Sandbox.connect(sandbox.sandbox_id)
    # What the sandbox itself gave out is its own and goes on.
    assert sandbox.commands.run("echo still mine").stdout == "still mine\n"
    with pytest.raises(e2b.AuthenticationException):
        sandbox.kill()


def test_user_that_is_not_there(sandbox):
    with pytest.raises(e2b.AuthenticationException):
        sandbox.commands.run("true", user="nobody-of-that-name")


def test_sandbox_of_somebody_else(half, fresh_sandbox, other_user):
    client = half.client(**other_user.connection)
    with pytest.raises(e2b.SandboxNotFoundException):
        client.Sandbox.connect(fresh_sandbox.sandbox_id)
    assert client.Sandbox.kill(fresh_sandbox.sandbox_id) is False
    assert fresh_sandbox.is_running() is True


# --- the server


def test_too_many_requests(half, slow, mark):
    client = half.client(**Tenant(slow, mark).connection, **NO_RETRIES)
    # Many at a time, so that they are too many however slow each is.
    with pytest.raises(e2b.RateLimitException), ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda _: client.Sandbox.list().next_items(), range(200)))


def test_refusal_says_when_to_come_again(slow, mark):
    key = Tenant(slow, mark).key
    with httpx.Client(base_url=slow.e2b_url, headers={"X-API-Key": key}, timeout=120, trust_env=False) as client:
        with ThreadPoolExecutor(20) as pool:
            replies = list(pool.map(lambda _: client.get("/v2/sandboxes"), range(200)))
    refused = [reply for reply in replies if reply.status_code == 429]
    assert refused and {reply.status_code for reply in replies} == {200, 429}
    assert all(int(reply.headers["retry-after"]) >= 1 and reply.json()["code"] == 429 for reply in refused)


@pytest.fixture(scope="session")
def slow():
    """A server that answers few requests."""
    with Server("--ready", "0", SERVER_RATE_LIMIT=2) as server:
        yield server


def test_more_sandboxes_than_a_user_may_have(half, tenants):
    client = half.client(**tenants("greedy").connection, **NO_RETRIES)
    client.Sandbox.create()
    with pytest.raises(e2b.RateLimitException):
        client.Sandbox.create()


def test_server_without_room(half, tenants):
    for name in ("one", "two"):
        half.client(**tenants(name).connection).Sandbox.create()
    with pytest.raises(Busy) as raised:
        half.client(**tenants("three").connection, **NO_RETRIES).Sandbox.create()
    assert "503" in str(raised.value)
