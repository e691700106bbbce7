"""The clients of the seeds run as they are. What they call is in `calls/`."""

import asyncio
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from api import describe_reply
from waiting import wait_for

CALLS = Path(__file__).parent / "calls"

pytestmark = pytest.mark.quick


@pytest.fixture
def seed_client(server):
    spec = importlib.util.spec_from_file_location("seed_001", CALLS / "seed_001.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.SandboxClient(server.url + "/", timeout=240)


def test_client_of_seed_001_runs_unchanged(seed_client, api):
    async def session(client):
        sandbox = await client.create_sandbox("user123")
        assert await client.run_command(sandbox, "echo hello; echo there >&2") == "hello\nthere\n"
        assert await client.run_command(sandbox, "sleep 60", background=True) == ""
        await client.write_file(sandbox, "/home/user/app.py", "print('hi')\n")
        assert await client.read_file(sandbox, "/home/user/app.py") == "print('hi')\n"
        assert await client.run_command(sandbox, "python3 /home/user/app.py") == "hi\n"
        assert (await client.expose_port(sandbox, 3000)).startswith("http://")
        await client.schedule_timeout(sandbox, 600)
        assert api.info(sandbox)["timeout"] == 600
        api.pause(sandbox)
        await client.connect_sandbox(sandbox)
        assert api.status(sandbox) == "running"
        await client.delete_sandbox(sandbox)
        return sandbox

    sandbox = asyncio.run(session(seed_client))
    assert api.post("/sandboxes/connect", {"sandbox_id": sandbox}).status_code == 404


def test_client_of_seed_001_hears_of_errors(seed_client):
    async def session(client):
        with pytest.raises(httpx.HTTPStatusError) as raised:
            await client.run_command("nosuchsandbox", "true")
        return raised.value.response

    reply = asyncio.run(session(seed_client))
    assert reply.status_code == 404
    assert reply.json()["detail"]


@pytest.fixture
def sandbox_test(server):
    """The user of seed 002, made as its `create_test_user.py` would."""
    admin = server.admin()
    admin.ok("POST", "/users", {"name": "sandbox_test", "password": "TestPass123!", "role": "user"})
    yield
    for sandbox in admin.all(owner="sandbox_test"):
        admin.remove(sandbox["sandbox_id"])
    admin.ok("DELETE", "/users/sandbox_test")
    admin.close()


def test_script_of_seed_002_runs_unchanged(server, sandbox_test):
    command = [sys.executable, CALLS / "seed_002.py", server.url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    created, output, *rest = done.stdout.splitlines()
    assert created.startswith("Created: ")
    assert output.startswith("Output: Python 3.")
    assert rest[-1] == "Deleted"


@pytest.fixture
def enveloped(server, sandbox_test):
    """A caller with seed 002's headers, and the paths of its dialect."""
    with httpx.Client(base_url=server.url, timeout=240, trust_env=False) as client:
        login = client.post("/api/v1/auth/login/swagger", params={"username": "sandbox_test", "password": "TestPass123!"})
        assert login.status_code == 200, describe_reply(login)
        client.headers["Authorization"] = f"Bearer {login.json()['access_token']}"
        yield client


BASES = ["/agent/sandboxes/sandboxes", "/api/v1/agent/sandboxes"]


@pytest.mark.parametrize("base", BASES)
def test_every_verb_of_seed_002_answers_in_its_envelope(enveloped, base):
    def data(method, path, body=None):
        reply = enveloped.request(method, base + path, json=body)
        assert reply.status_code == 200, describe_reply(reply)
        envelope = reply.json()
        assert (envelope["code"], envelope["msg"]) == (200, "Request success")
        return envelope["data"]

    created = data("POST", "/create", {"user_id": "user-123"})
    sandbox = created["sandbox_id"]
    assert created["success"] is True and created["status"] == "running"
    assert created["provider_sandbox_id"] and created["mcp_url"] and created["vscode_url"]
    assert data("GET", f"/{sandbox}/status")["status"] == "running"
    assert data("GET", f"/{sandbox}/info")["sandbox_id"] == sandbox
    assert set(data("GET", f"/{sandbox}/urls")) >= {"mcp_url", "vscode_url"}
    ran = data("POST", "/run-cmd", {"sandbox_id": sandbox, "command": "echo Hello && pwd", "background": False})
    assert (ran["success"], ran["output"], bool(ran["message"])) == (True, "Hello\n/home/user\n", True)
    file = {"sandbox_id": sandbox, "file_path": "/home/user/test.py"}
    assert data("POST", "/write-file", {**file, "content": "print('Hello World')"})["success"] is True
    assert data("POST", "/read-file", file)["content"] == "print('Hello World')"
    assert data("POST", "/create-directory", {"sandbox_id": sandbox, "directory_path": "/home/user/d"})["success"]
    assert data("POST", "/expose-port", {"sandbox_id": sandbox, "port": 3000})["url"]
    assert data("POST", "/schedule-timeout", {"sandbox_id": sandbox, "timeout_seconds": 60})["expires_at"]
    assert data("POST", f"/{sandbox}/pause")["success"] is True
    assert data("GET", f"/{sandbox}/status")["status"] == "paused"
    assert data("POST", "/connect", {"sandbox_id": sandbox})["status"] == "running"
    assert data("DELETE", f"/{sandbox}")["success"] is True


@pytest.mark.parametrize("base", BASES)
def test_errors_of_seed_002_are_enveloped_with_their_status_and_a_trace_id(enveloped, base):
    reply = enveloped.get(f"{base}/nosuchsandbox/status")
    envelope = reply.json()
    assert (reply.status_code, envelope["code"], envelope["data"]) == (404, 404, None)
    assert envelope["msg"] and envelope["trace_id"]


def test_request_id_is_echoed_made_or_refused(enveloped):
    path = "/agent/sandboxes/sandboxes/nosuchsandbox/status"
    sent = "0190a5c6-7c3e-7e4b-9d2e-0123456789ab"
    assert enveloped.get(path, headers={"X-Request-ID": sent}).headers["x-request-id"] == sent
    assert enveloped.get(path).headers["x-request-id"]
    malformed = enveloped.get(path, headers={"X-Request-ID": "not an id!"})
    assert (malformed.status_code, malformed.json()["code"]) == (400, 400)
    assert malformed.headers["x-request-id"] != "not an id!"


def test_login_answers_without_an_envelope(server, sandbox_test):
    for options in (
        {"params": {"username": "sandbox_test", "password": "TestPass123!"}},
        {"data": {"username": "sandbox_test", "password": "TestPass123!"}},
        {"json": {"username": "sandbox_test", "password": "TestPass123!"}},
    ):
        reply = httpx.post(f"{server.url}/api/v1/auth/login/swagger", timeout=120, trust_env=False, **options)
        assert reply.status_code == 200, describe_reply(reply)
        body = reply.json()
        assert body["token_type"] == "bearer" and body["access_token"].count(".") == 2
        assert "sandbox_test" in json.dumps(body["user"])
        assert "code" not in body and "data" not in body


def test_curl_session_of_seed_004_runs_unchanged(server, api):
    done = subprocess.run([CALLS / "seed_004.sh", server.url], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    created, executed, entries, deleted = (json.loads(line) for line in done.stdout.splitlines())
    sandbox = created["sandbox_id"]
    assert set(created) >= {
        "sandbox_id", "container_id", "project_name", "status", "created_at", "workspace_path", "ports", "resource_limits",
    }  # fmt: skip
    assert (created["project_name"], created["status"], created["workspace_path"]) == ("test", "running", "/workspace")
    assert created["resource_limits"] == {"memory": "1g", "cpu": "1.0"}
    assert executed["exit_code"] == 0 and executed["stdout"].startswith("v") and executed["stderr"] == ""
    assert sandbox in [one["sandbox_id"] for one in (entries["sandboxes"] if isinstance(entries, dict) else entries)]
    assert deleted["success"] is True and deleted["message"]
    assert api.get(f"/api/sandboxes/{sandbox}").status_code == 404


ALIASES = [
    ("/sandboxes/run-command", "/sandboxes/run-cmd", {"command": "true"}),
    ("/sandboxes/schedule-timeout", "/sandboxes/timeout", {"timeout": 60}),
    ("/sandboxes/schedule-timeout", "/sandboxes/timeout", {"timeout_seconds": 60}),
    ("/sandboxes/write-file", "/sandboxes/write-file/", {"path": "/tmp/a", "content": "x"}),
    ("/sandboxes/write-file", "/sandboxes/write-file", {"file_path": "/tmp/a", "content": "x"}),
    ("/sandboxes/read-file", "/sandboxes/read-file", {"file_path": "/etc/hostname"}),
]


@pytest.mark.parametrize("path, alias, body", ALIASES)
def test_names_of_seed_003_mean_the_same(api, shared, path, alias, body):
    plain = api.ok("POST", path, {"sandbox_id": shared, **body})
    assert set(api.ok("POST", alias, {"sandbox_id": shared, **body})) == set(plain)


def test_delete_and_status_of_seed_003(api, make):
    sandbox = make()
    assert api.ok("GET", "/sandboxes/status", params={"sandbox_id": sandbox})["status"] == "running"
    everything = api.ok("GET", "/sandboxes/status")["sandboxes"]
    assert sandbox in [one["sandbox_id"] for one in everything]
    assert api.ok("POST", "/sandboxes/delete", {"sandbox_id": sandbox})["success"] is True
    assert api.post("/sandboxes/run-command", {"sandbox_id": sandbox, "command": "true"}).status_code == 404


@pytest.mark.parametrize("name", ["template_id", "sandbox_template_id", "template"])
def test_template_has_three_names(api, make, name):
    assert api.info(make(**{name: "base"}))["template_id"] == api.info(make())["template_id"]
    unknown = api.post("/sandboxes/create", {"user_id": "tester", name: "no-such-template"})
    assert unknown.status_code in (404, 422), describe_reply(unknown)


@pytest.mark.parametrize("path", ["/health", "/sandboxes", "/sandboxes/status", "/api/sandboxes"])
def test_a_slash_at_the_end_makes_no_difference_and_no_redirect(api, path):
    assert (api.get(path).status_code, api.get(path + "/").status_code) == (200, 200)


def test_a_sandbox_of_one_dialect_is_seen_in_the_others(api, enveloped, make, server):
    admin = server.admin()
    native = make()
    docker = api.ok("POST", "/api/sandboxes/", {"project_name": "shared"})["sandbox_id"]
    envelope = enveloped.post("/agent/sandboxes/sandboxes/create", json={"user_id": "demo"}).json()["data"]["sandbox_id"]
    for sandbox in (native, docker, envelope):
        assert api.status(sandbox) == "running"
        assert api.ok("GET", f"/api/sandboxes/{sandbox}")["status"] == "running"
        for base in BASES:
            assert admin.ok("GET", f"{base}/{sandbox}/status")["data"]["status"] == "running"
        api.write(sandbox, "/home/user/seen", "everywhere")
        ran = api.ok("POST", f"/api/sandboxes/{sandbox}/execute", {"command": ["cat", "/home/user/seen"]})
        assert ran["stdout"] == "everywhere"
    entries = {one["sandbox_id"] for one in api.all()}
    assert {native, docker, envelope} <= entries
    api.pause(docker)
    assert api.ok("GET", f"/api/sandboxes/{docker}")["status"] == "stopped"
    assert api.ok("DELETE", f"/api/sandboxes/{envelope}")["success"] is True
    wait_for(lambda: envelope not in {one["sandbox_id"] for one in api.all()}, "the deleted one is off the list")
    api.remove(docker)
    admin.close()
