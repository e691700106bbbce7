"""Users' own servers over the older transport: one of the official Python SDK, called through our tool server."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from client import ToolEndpoint, text
from ports import free_port
from program import environment, find_program
from waiting import wait_for

# For one answer, on a machine that is busy with other things.
TIMEOUT = 120
_SERVER = Path(__file__).with_name("older_server.py")


class OlderServer:
    """The server as a process, which can be started again at the same address."""

    def __init__(self):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/events/sse"

    def start(self):
        self._process = subprocess.Popen([sys.executable, str(_SERVER), str(self.port)])
        wait_for(self._answers, "the server listens")

    def _answers(self):
        assert self._process.poll() is None, "the server ended at once"
        try:
            return httpx.get(self.url, timeout=TIMEOUT).status_code == 401
        except httpx.TransportError:
            return False

    def wait_for_end(self):
        self._process.wait(timeout=TIMEOUT)

    def stop(self):
        self._process.kill()
        self._process.wait()


@pytest.fixture
def older():
    server = OlderServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def tools(tmp_path):
    """The tool server alone, with its URL and token."""
    command = [str(find_program()), "tools", "--workspace", str(tmp_path), "--port", "0", "--json"]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        try:
            # It goes on after its one object, which ends with a line of its own.
            outcome = json.loads("".join([*iter(process.stdout.readline, "}\n"), "}"]))
            yield ToolEndpoint(outcome["url"], outcome["token"])
        finally:
            process.kill()


def configure_servers(tools, **servers):
    """Tells the user's own servers, and returns what became of each."""
    answer = httpx.post(f"{tools.base}/custom-mcp", json={"mcpServers": servers}, headers=tools.headers, timeout=TIMEOUT)
    assert answer.status_code == 200, answer.text
    return answer.json()["servers"]


def test_it_is_called_with_its_headers_and_tells_its_progress(tools, older):
    right, wrong = ({"url": older.url, "headers": {"X-Key": key}} for key in ("right", "wrong"))
    outcome = configure_servers(tools, good={**right, "type": "sse"}, by_address=right, bad=wrong)
    assert outcome["good"]["status"] == outcome["by_address"]["status"] == "ok", outcome
    assert outcome["bad"]["status"] == "failed" and "401" in outcome["bad"]["error"], outcome
    assert text(tools.call("mcp_good_add", a=40, b=2)) == "42"
    steps = []

    async def use():
        async def note(progress, total, message):
            steps.append(message)

        async with tools.session() as session:
            return await session.call_tool("mcp_good_steps", {}, progress_callback=note)

    assert text(asyncio.run(use())) == "done"
    assert steps == ["step 1", "step 2", "step 3"]


def test_it_is_connected_to_again_after_its_death(tools, older):
    outcome = configure_servers(tools, mine={"url": older.url, "type": "sse", "headers": {"X-Key": "right"}})
    assert outcome["mine"]["status"] == "ok", outcome
    assert "ended during the call" in tools.fails("mcp_mine_die")
    older.wait_for_end()
    older.start()
    wait_for(lambda: not tools.call_any("mcp_mine_add", a=1, b=2).is_error, "it is called again")


def test_a_server_with_another_protocol_is_reported(tools, older):
    page = {"url": f"http://127.0.0.1:{older.port}/", "type": "sse", "headers": {"X-Key": "right"}}
    (other,) = configure_servers(tools, other=page).values()
    assert other["status"] == "failed" and "404" in other["error"], other
    streamable = {"url": tools.url, "type": "sse", "headers": tools.headers}
    (other,) = configure_servers(tools, other=streamable).values()
    assert other["status"] == "failed", other
