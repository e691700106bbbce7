"""The official JavaScript client, the Inspector on its command line, and the official conformance suite.

`$MCP_NODE_MODULES` is where the packages are; Node itself comes from PyPI, since the suite wants a newer one than Debian has.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest
from node import NODE

HERE = Path(__file__).parent
MODULES = Path(os.environ["MCP_NODE_MODULES"])
BINARIES = MODULES / ".bin"


def node(*arguments, timeout=300, **variables):
    environment = {"PATH": f"{NODE.parent}:{os.environ['PATH']}", "HOME": os.environ.get("HOME", "/"), **variables}
    command = [str(NODE), *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout, cwd=HERE)


def test_the_javascript_client(endpoint):
    link = HERE / "node_modules"
    link.unlink(missing_ok=True)
    link.symlink_to(MODULES)
    try:
        done = node("--test", "--test-reporter=tap", "client.test.mjs", MCP_URL=endpoint.url, MCP_BASE=endpoint.base, MCP_KEY=endpoint.key)
    finally:
        link.unlink()
    assert done.returncode == 0, done.stdout + done.stderr


def inspector(endpoint, *arguments):
    header = f"Authorization: Bearer {endpoint.key}"
    return node(BINARIES / "mcp-inspector", "--cli", endpoint.url, "--transport", "http", "--header", header, *arguments)


def test_the_inspector_lists_and_calls(endpoint):
    entries = inspector(endpoint, "--method", "tools/list")
    assert entries.returncode == 0, entries.stderr
    assert "BashInit" in {tool["name"] for tool in json.loads(entries.stdout)["tools"]}
    called = inspector(endpoint, "--method", "tools/call", "--tool-name", "run_command", "--tool-arg", "command=echo inspected")
    assert called.returncode == 0, called.stderr
    assert "inspected" in called.stdout


# Those that need nothing but a server. The others ask for tools, resources and prompts that only the suite's own example has, or for
# what this server does not offer: completion, levels of logging, subscriptions, sampling, elicitation.
SCENARIOS = [
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_conformance_suite(open_mcp_url, scenario):
    """Against a server that is open on loopback, since the suite sends no credentials."""
    done = node(BINARIES / "conformance", "server", "--url", open_mcp_url, "--scenario", scenario)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
