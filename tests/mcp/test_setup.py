"""`setup-mcp`: everything in one call, and the user's own tool servers."""

import json
from pathlib import Path

import pytest

from client import ToolEndpoint, text
from waiting import wait_for

# Speaks MCP on its standard input and output with nothing but Python's own library.
ECHO = (Path(__file__).parent / "echo_server.py").read_text()


@pytest.fixture
def echo(api, fresh):
    api.write(fresh, "/workspace/echo_server.py", ECHO)
    return {"command": "python3", "args": ["/workspace/echo_server.py"], "env": {"GREETING": "hello"}}


def set_up(api, sandbox, **body):
    # A server that is added has to be started, on a machine that is busy with other things.
    return api.ok("POST", "/sandboxes/setup-mcp", {"sandbox_id": sandbox, "timeout": 120, **body})


def test_one_call_does_it_all_and_tells_the_tools(api, server, fresh, echo):
    answer = set_up(
        api,
        fresh,
        credential={"user_api_key": "k", "session_id": "s"},
        tool_server_url="http://tools.invalid",
        mcp_config={"mcpServers": {"mine": echo}},
    )
    assert answer["success"] and answer["mcp_url"] == ToolEndpoint.to(api, server, fresh).url
    assert {"Bash", "Read", "mcp_mine_echo"} <= set(answer["tools"])
    endpoint = ToolEndpoint.to(api, server, fresh)
    assert text(endpoint.call("mcp_mine_echo", text="to you")) == "hello to you"


def test_a_server_that_dies_is_started_again(api, server, fresh, echo):
    set_up(api, fresh, mcp_config={"mcpServers": {"mine": echo}})
    endpoint = ToolEndpoint.to(api, server, fresh)
    endpoint.call_any("mcp_mine_die")
    # A call waits only so long for a server that is being started.
    answer = wait_for(lambda: answered(endpoint, "mcp_mine_echo", text="again"), "it is called again")
    assert text(answer) == "hello again"


def answered(endpoint, tool, **arguments):
    """The result of a call; none where it failed."""
    result = endpoint.call_any(tool, **arguments)
    return None if result.is_error else result


def test_a_server_that_does_not_start_is_reported_and_the_others_work(api, server, fresh, echo):
    broken = {"command": "no-such-program", "args": []}
    answer = set_up(api, fresh, mcp_config={"mcpServers": {"mine": echo, "broken": broken}})
    assert "mcp_mine_echo" in answer["tools"]
    assert "broken" in json.dumps(answer), answer


def test_another_set_replaces_the_first(api, server, fresh, echo):
    set_up(api, fresh, mcp_config={"mcpServers": {"mine": echo}})
    answer = set_up(api, fresh, mcp_config={"mcpServers": {"other": echo}})
    names = [name for name in answer["tools"] if name.startswith("mcp_")]
    assert "mcp_other_echo" in names and not any(name.startswith("mcp_mine") for name in names)


def test_a_port_is_shown_with_its_preview_url(api, server, fresh):
    set_up(api, fresh)
    endpoint = ToolEndpoint.to(api, server, fresh)
    endpoint.call("Bash", session_name="web", command="python3 -m http.server 8000 --bind 127.0.0.1 &")
    response = text(endpoint.call("register_port", port=8000))
    assert fresh in response and "8000" in response and "http" in response


