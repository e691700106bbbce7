"""The server's own tools: sandboxes for any MCP client, scoped by its key."""

import asyncio
import json
import os

import httpx
import pytest
from mcp import ClientSession, StdioServerParameters, stdio_client

from client import ToolEndpoint, text
from program import environment, find_program


def data(result):
    return result.structured_content or json.loads(text(result))


@pytest.fixture
def created(control, api):
    sandbox = data(control.call("sandbox_create"))["sandbox_id"]
    yield sandbox
    api.remove(sandbox)


def test_a_whole_life(control, created):
    assert created in text(control.call("sandbox_list"))
    control.call("write_file", sandbox_id=created, path="/tmp/a.txt", content="from afar\n")
    assert "from afar" in text(control.call("run_command", sandbox_id=created, command="cat /tmp/a.txt"))
    assert "from afar" in text(control.call("read_file", sandbox_id=created, path="/tmp/a.txt"))
    assert "a.txt" in text(control.call("list_files", sandbox_id=created, path="/tmp"))
    assert created in text(control.call("expose_port", sandbox_id=created, port=8000))
    control.call("sandbox_pause", sandbox_id=created)
    assert "paused" in text(control.call("sandbox_info", sandbox_id=created))
    control.call("sandbox_resume", sandbox_id=created)
    assert text(control.call("template_list"))
    control.call("sandbox_delete", sandbox_id=created)
    assert created not in text(control.call("sandbox_list"))


def test_a_command_that_fails_is_a_result(control, created):
    result = control.call_any("run_command", sandbox_id=created, command="echo bad >&2; exit 3")
    assert "bad" in text(result) and "3" in json.dumps(data(result))


def test_the_tools_of_a_sandbox_are_reached_through_the_server(control, created):
    assert "Bash" in text(control.call("sandbox_tools", sandbox_id=created))
    arguments = {"command": "echo relayed"}
    result = control.call("sandbox_call_tool", sandbox_id=created, tool="run_command", arguments=arguments)
    assert "relayed" in text(result)


def test_others_sandboxes_are_not_there(control, api, created):
    api.ok("POST", "/users", {"name": "other"})
    other = ToolEndpoint(control.url, api.ok("POST", "/keys", {"name": "theirs", "user": "other"})["key"])
    assert created not in text(other.call("sandbox_list"))
    assert "not" in other.fails("sandbox_info", sandbox_id=created)
    assert other.fails("run_command", sandbox_id=created, command="id")


def test_requests_without_a_key_are_refused(control):
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"Accept": "application/json, text/event-stream"}
    assert httpx.post(control.url, json=body, headers=headers, timeout=120).status_code == 401


def test_clients_that_start_a_program(server, control, created):
    """`sandyard mcp`, as a desktop client would start it."""
    variables = environment() | {"SANDYARD_URL": server.url, "SANDYARD_API_KEY": server.admin_key}

    async def use(*arguments):
        program = StdioServerParameters(command=str(find_program()), args=["mcp", *arguments], env=variables)
        async with stdio_client(program) as streams, ClientSession(*streams) as session:
            await session.initialize()
            return [tool.name for tool in (await session.list_tools()).tools]

    assert "sandbox_create" in asyncio.run(use())
    assert "Bash" in asyncio.run(use("--sandbox", created))


def test_the_tool_server_alone(tmp_path):
    """`sandyard tools --stdio` for a folder of this machine."""
    arguments = ["tools", "--workspace", str(tmp_path), "--stdio"]
    variables = environment() | {"PATH": os.environ["PATH"]}
    program = StdioServerParameters(command=str(find_program()), args=arguments, env=variables)

    async def use():
        async with stdio_client(program) as streams, ClientSession(*streams) as session:
            await session.initialize()
            await session.call_tool("Write", {"file_path": "a.txt", "content": "alone"})
            return await session.call_tool("Read", {"file_path": "/etc/passwd"})

    refused = asyncio.run(use())
    assert (tmp_path / "a.txt").read_text() == "alone"
    assert refused.is_error
