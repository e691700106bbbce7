"""The MCP option: a template with the gateway's program, started by the SDK with the configuration given."""

import json

import e2b
import pytest

from public_ports import get
from waiting import wait_for

# Stands for the gateway: keeps what it was given, and listens where the SDK says the tools are.
GATEWAY = """#!/bin/sh
[ "$2" = '{"broken": {}}' ] && { echo "no such tool" >&2; exit 1; }
mkdir -p /etc/mcp-gateway && printf %s "$GATEWAY_ACCESS_TOKEN" > /etc/mcp-gateway/.token
printf %s "$2" > /etc/mcp-gateway/config
cd /etc/mcp-gateway && setsid python3 -m http.server 50005 >/dev/null 2>&1 &
"""


@pytest.fixture(scope="session")
def template(half):
    """The template the SDK asks for by default."""
    sandbox = half.Sandbox.create()
    sandbox.files.write("/usr/local/bin/mcp-gateway", GATEWAY, user="root")
    sandbox.commands.run("chmod 755 /usr/local/bin/mcp-gateway", user="root")
    snapshot = sandbox.create_snapshot(name="mcp-gateway")
    sandbox.kill()
    yield snapshot
    half.Sandbox.delete_snapshot(snapshot.snapshot_id)


def test_gateway_is_started_with_its_configuration(half, server, template, make):
    sandbox = make(mcp={"exa": {"apiKey": "k"}})
    assert json.loads(sandbox.files.read("/etc/mcp-gateway/config", user="root")) == {"exa": {"apiKey": "k"}}
    token = sandbox.get_mcp_token()
    assert token == half.Sandbox.connect(sandbox.sandbox_id).get_mcp_token()
    assert sandbox.get_mcp_url() == f"https://{sandbox.get_host(50005)}/mcp"
    wait_for(lambda: get(server, sandbox, "/config", port=50005).status_code == 200, "the gateway listens")


def test_gateway_that_does_not_start_is_said(half, template):
    with pytest.raises(e2b.SandboxException, match="no such tool"):
        half.Sandbox.create(mcp={"broken": {}})
