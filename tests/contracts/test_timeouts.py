"""A command that exceeds its time: what it wrote until then comes with the error, in every dialect."""

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from cli import Cli
from server import Server
from waiting import wait_for

# The server must have read the output when the time is over, also on a busy machine.
SECONDS = 4
SCRIPT = "echo out; echo err >&2; sleep 4343"
PREFIXES = ["/agent/sandboxes/sandboxes", "/api/v1/agent/sandboxes"]
EXPECTED = {"stdout": "out\n", "stderr": "err\n", "output": "out\nerr\n", "is_truncated": False}


@pytest.fixture(scope="module")
def server():
    with Server("--ready", "0", LIFECYCLE_COMMAND_TIMEOUT=SECONDS) as server:
        yield server


@pytest.fixture(scope="module")
def sandbox(server):
    api = server.api()
    yield api.create()
    api.close()


@pytest.fixture(scope="module")
def reported_timeout(server, sandbox):
    """What each dialect and the command line tell, all run at once."""
    calls = {
        "native": lambda: server.api().post("/sandboxes/run-command", request(sandbox)),
        "docker": lambda: server.api().post(f"/api/sandboxes/{sandbox}/execute", {"command": ["sh", "-c", SCRIPT]}),
        "tool": lambda: call_tool(server, request(sandbox)),
        "cli": lambda: run_cli(server, sandbox),
        "cli --json": lambda: run_cli(server, sandbox, "--json"),
    }
    for prefix in PREFIXES:
        calls[prefix] = lambda prefix=prefix: server.admin().post(f"{prefix}/run-command", request(sandbox))
    with ThreadPoolExecutor(len(calls)) as pool:
        futures = {name: pool.submit(call) for name, call in calls.items()}
        return {name: future.result() for name, future in futures.items()}


def request(sandbox):
    return {"sandbox_id": sandbox, "command": SCRIPT, "timeout": SECONDS}


def call_tool(server, arguments):
    params = {"name": "run_command", "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-06-18",
        "X-API-Key": server.admin_key,
    }
    text = httpx.post(server.url + "/mcp", json=body, headers=headers, timeout=120, trust_env=False).text
    events = [line[5:] for line in text.splitlines() if line.startswith("data:")]
    return json.loads(events[-1] if events else text)["result"]


def run_cli(server, sandbox, *flags):
    with Cli(server.url, "exec", *flags, "--timeout", SECONDS, sandbox, "--", "sh", "-c", SCRIPT) as cli:
        return cli.wait(), bytes(cli.stdout), bytes(cli.stderr)


def check(reply):
    """The error is as it always was, with the output beside it."""
    body = reply.json()
    assert reply.status_code == 408, body
    assert {name: body.get(name) for name in EXPECTED} == EXPECTED
    assert body["pid"] > 0 and body["hint"]
    return body


def test_native(reported_timeout):
    body = check(reported_timeout["native"])
    assert body["code"] == "timed_out" and "did not end within" in body["detail"]


@pytest.mark.parametrize("prefix", PREFIXES)
def test_enveloped(reported_timeout, prefix):
    body = check(reported_timeout[prefix])
    assert (body["code"], body["error"], body["data"]) == (408, "timed_out", None)


def test_docker_style(reported_timeout):
    assert check(reported_timeout["docker"])["code"] == "timed_out"


def test_a_tool_call(reported_timeout):
    result = reported_timeout["tool"]
    assert result["isError"] is True
    content = result["structuredContent"]
    assert (content["stdout"], content["stderr"], content["timed_out"]) == ("out\n", "err\n", True)


def test_the_command_line(reported_timeout):
    code, stdout, stderr = reported_timeout["cli"]
    assert (code, stdout) == (124, b"out\n") and stderr.startswith(b"err\n")


def test_the_command_line_for_programs(reported_timeout):
    code, stdout, _ = reported_timeout["cli --json"]
    result = json.loads(stdout)
    assert code == 124
    assert (result["stdout"], result["stderr"], result["timed_out"]) == ("out\n", "err\n", True)


def test_a_command_that_exceeds_its_time_while_no_server_runs(server, sandbox):
    """The next server tells the client why the command ended."""
    script = f"echo before; sleep 4343 # {sandbox}"
    with Cli(server.url, "exec", "--timeout", SECONDS, sandbox, "--", "bash", "-c", script) as cli:
        cli.wait_for_output(1)
        server.kill()
        wait_for(lambda: not running_on_host(f"^bash -c .*# {sandbox}"), "the agent kills it")
        server.start()
        assert cli.wait() == 124, bytes(cli.stderr)
    assert bytes(cli.stdout) == b"before\n"


def running_on_host(pattern):
    return subprocess.run(["pgrep", "-f", pattern], capture_output=True).returncode == 0
