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


def test_the_javascript_client(way):
    link = HERE / "node_modules"
    link.unlink(missing_ok=True)
    link.symlink_to(MODULES)
    try:
        done = node("--test", "--test-reporter=tap", "client.test.mjs", MCP_URL=way.url, MCP_BASE=way.base, MCP_KEY=way.key)
    finally:
        link.unlink()
    assert done.returncode == 0, done.stdout + done.stderr


def inspector(way, *arguments):
    header = f"Authorization: Bearer {way.key}"
    return node(BINARIES / "mcp-inspector", "--cli", way.url, "--transport", "http", "--header", header, *arguments)


def test_the_inspector_lists_and_calls(way):
    listed = inspector(way, "--method", "tools/list")
    assert listed.returncode == 0, listed.stderr
    assert "BashInit" in {tool["name"] for tool in json.loads(listed.stdout)["tools"]}
    called = inspector(way, "--method", "tools/call", "--tool-name", "run_command", "--tool-arg", "command=echo inspected")
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
def test_the_conformance_suite(opened, scenario):
    """Against a server that is open on loopback, since the suite sends no credentials."""
    done = node(BINARIES / "conformance", "server", "--url", opened, "--scenario", scenario)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
