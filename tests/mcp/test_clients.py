"""The official clients, unmodified: list, call, cancel, progress, reconnect, many at once."""

import asyncio
from dataclasses import replace

import fastmcp
import httpx
import pytest
from fastmcp.client.transports import SSETransport, StreamableHttpTransport
from mcp import ClientSession
from mcp.client.sse import sse_client

from client import Hearer, ToolEndpoint, text
from server import Server
from waiting import wait_for, wait_until

# For one answer, on a machine that is busy with other things.
TIMEOUT = 120

# Every tool of the inventory, which `?tools=all` lists from the first request on.
INVENTORY = """
BashInit Bash BashView BashStop BashList BashWriteToProcess
Read Write Edit apply_patch str_replace_based_edit_tool Grep Glob ASTGrep LS
TodoRead TodoWrite
browser_navigation browser_restart browser_view_interactive_elements browser_click browser_enter_text
browser_enter_multi_texts browser_press_key browser_scroll_down browser_scroll_up browser_switch_tab browser_open_new_tab
browser_wait browser_get_select_options browser_select_dropdown_option browser_drag
web_visit read_remote_image web_search web_batch_search image_search
fullstack_project_init save_checkpoint register_port register_deployment get_database_connection
SlideWrite SlideEdit slide_apply_patch
generate_image generate_video claude_code codex
read_file write_file run_command browser_navigate
""".split()


# What the template `host` has no program for, and what needs a service that nobody has set.
UNUSABLE = "claude_code codex generate_image generate_video web_search web_batch_search image_search".split()


def list_with(endpoint, query=""):
    """The tools that a new client gets, by name."""

    async def tools():
        async with replace(endpoint, url=endpoint.url + query).session() as session:
            return (await session.list_tools()).tools

    return {tool.name: tool for tool in asyncio.run(tools())}


def test_a_client_chooses_which_tools_are_listed(endpoint, control):
    assert set(list_with(endpoint, "?tools=Bash,TodoRead,browser_s*")) == {
        *("Bash", "TodoRead", "browser_scroll_down", "browser_scroll_up", "browser_switch_tab", "browser_select_dropdown_option")
    }
    assert set(list_with(control, "?tools=sandbox_create%2Crun_command")) == {"sandbox_create", "run_command"}


def test_tools_that_cannot_work_are_not_listed_and_still_say_why(endpoint, api, fresh, server):
    entries = set(list_with(endpoint))
    assert not entries & set(UNUSABLE) and set(INVENTORY) - set(UNUSABLE) <= entries, entries
    assert "tool_server_url" in endpoint.fails("web_search", query="anything")
    # They are as soon as they can work.
    api.ok("POST", "/sandboxes/setup-mcp", {"sandbox_id": fresh, "tool_server_url": "http://tools.invalid"})
    entries = set(list_with(ToolEndpoint.to(api, server, fresh)))
    assert {"web_search", "generate_image"} <= entries and "codex" not in entries


def test_a_setting_chooses_the_tools_of_clients_that_do_not():
    with Server(SANDBOX_MCP_TOOLS="Read,Write") as server:
        api = server.admin()
        sandbox = api.create()
        target = ToolEndpoint.to(api, server, sandbox)
        assert set(list_with(target)) == {"Read", "Write"}
        assert set(INVENTORY) <= set(list_with(target, "?tools=all"))
        assert set(list_with(replace(target, url=target.base + "/mcp/"))) == {"Read", "Write"}
        api.remove(sandbox)
        api.close()


def test_the_end_of_a_session_is_answered_with_success(endpoint, control):
    """The official client ends its session with DELETE, and some report every status but 200 and 204 as a failure."""
    for target in (endpoint, control):
        ends = []

        async def note(reply, ends=ends):
            if reply.request.method == "DELETE":
                ends.append(reply.status_code)

        async def use(target=target, note=note):
            async with target.session(on_reply=note) as session:
                await session.list_tools()

        asyncio.run(use())
        assert ends == [204], target.url


def test_every_tool_is_listed_in_the_first_request(endpoint):
    entries = list_with(endpoint, "?tools=all")
    assert set(INVENTORY) <= set(entries), set(INVENTORY) - set(entries)
    for tool in entries.values():
        assert tool.description and tool.input_schema["type"] == "object", tool.name
        assert tool.annotations is not None and tool.annotations.read_only_hint is not None, tool.name
        for name, parameter in tool.input_schema["properties"].items():
            assert parameter.get("description"), f"{tool.name} does not say what {name} is"


def test_a_call_through_the_official_client(endpoint):
    result = endpoint.call("run_command", command="echo $((6*7)); id -un; pwd")
    assert text(result).split()[:3] == ["42", "user", "/workspace"]


def test_fastmcp_over_both_transports(endpoint):
    async def use(transport):
        async with fastmcp.Client(transport, timeout=TIMEOUT) as client:
            names = [tool.name for tool in await client.list_tools()]
            result = await client.call_tool("run_command", {"command": "echo over fastmcp"})
            return names, text(result)

    for transport in (
        StreamableHttpTransport(f"{endpoint.url}?tools=all", headers=endpoint.headers),
        SSETransport(f"{endpoint.base}/sse?tools=all", headers=endpoint.headers),
    ):
        names, response = asyncio.run(use(transport))
        assert set(INVENTORY) <= set(names)
        assert "over fastmcp" in response


def test_the_older_transport(endpoint):
    async def use():
        connection = sse_client(f"{endpoint.base}/sse", headers=endpoint.headers, timeout=TIMEOUT)
        async with connection as streams, ClientSession(*streams) as session:
            await session.initialize()
            return await session.call_tool("run_command", {"command": "echo by events"})

    assert "by events" in text(asyncio.run(use()))


def test_one_line_clients(endpoint):
    for path in ("/mcp", "/mcp/"):
        body = {"tool": "write_file", "args": {"path": "one-line.txt", "content": "written\n"}}
        reply = httpx.post(endpoint.base + path, json=body, headers=endpoint.headers, timeout=TIMEOUT)
        assert reply.status_code == 200 and reply.json()["success"], reply.text
    read = {"tool": "read_file", "args": {"path": "one-line.txt"}}
    reply = httpx.post(f"{endpoint.base}/mcp/", json=read, headers=endpoint.headers, timeout=TIMEOUT)
    assert "written" in reply.json()["result"]
    unknown = {"tool": "no_such_tool", "args": {}}
    missing = httpx.post(f"{endpoint.base}/mcp/", json=unknown, headers=endpoint.headers, timeout=TIMEOUT)
    assert missing.status_code == 404 and not missing.json()["success"]


def test_progress_while_a_command_runs(endpoint, api, sandbox):
    hearer = Hearer(api, sandbox)

    async def use():
        async with endpoint.session() as session:
            arguments = {"session_name": "progress", "command": hearer.command, "timeout": 180}
            return await session.call_tool("Bash", arguments, progress_callback=hearer.note)

    result, outcome = asyncio.run(use()), hearer.outcome
    assert "step 4" in text(result)
    assert outcome and [step for step, _ in outcome] == sorted({step for step, _ in outcome}), outcome
    assert any("step" in (message or "") for _, message in outcome), outcome


def test_a_cancelled_call_ends_what_it_started(endpoint, api, sandbox):
    """As the protocol has it: a notification with the request's id."""

    async def use():
        async with endpoint.session() as session:
            arguments = {"session_name": "cancelled", "command": "sleep 98765"}
            call = asyncio.create_task(session.call_tool("Bash", arguments))
            await until(lambda: is_running(api, sandbox))
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await until(lambda: not is_running(api, sandbox))
            # The session of the client is as good as before.
            return await session.call_tool("run_command", {"command": "echo still here"})

    assert "still here" in text(asyncio.run(use()))


async def until(condition):
    await wait_until(lambda: asyncio.to_thread(condition), "what was done is seen")


def is_running(api, sandbox):
    return api.run(sandbox, "pgrep -f '[s]leep 98765' || true")["stdout"].strip() != ""


def test_a_client_that_comes_back_finds_its_shells(endpoint):
    endpoint.call("Bash", session_name="lasting", command="cd /tmp && export COLOUR=green")
    assert text(endpoint.call("Bash", session_name="lasting", command='echo "$COLOUR $PWD"')).startswith("green /tmp")


def test_an_answer_is_there_for_a_client_whose_connection_broke(endpoint):
    """The stream of a call is resumed with `Last-Event-ID` after its connection was cut."""
    common = {**endpoint.headers, "Accept": "application/json, text/event-stream"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "broken", "version": "1"}}
    with httpx.Client(headers=common, timeout=TIMEOUT) as http:
        with http.stream("POST", endpoint.url, json=rpc("initialize", hello, 1)) as reply:
            session = reply.headers["mcp-session-id"]
        http.headers.update({"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"})
        http.post(endpoint.url, json={"jsonrpc": "2.0", "method": "notifications/initialized"})
        call = {"name": "run_command", "arguments": {"command": "sleep 2; echo late answer"}}
        with http.stream("POST", endpoint.url, json=rpc("tools/call", call, 2)) as reply:
            first = next(line for line in reply.iter_lines() if line.startswith("id:"))
        last_id = first.removeprefix("id:").strip()
        with http.stream("GET", endpoint.url, headers={"Last-Event-ID": last_id}) as reply:
            assert reply.status_code == 200
            found = next(line for line in reply.iter_lines() if "late answer" in line)
    assert '"id":2' in found.replace(" ", "")


def rpc(method, params, number):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def test_a_hundred_calls_at_once(endpoint):
    async def use():
        async with endpoint.session() as session:
            calls = [session.call_tool("run_command", {"command": f"echo number {n}"}) for n in range(100)]
            return await asyncio.gather(*calls)

    results = asyncio.run(use())
    assert [text(result).strip().splitlines()[0] for result in results] == [f"number {n}" for n in range(100)]


def test_the_workspace_is_there_as_resources(endpoint, api, sandbox):
    endpoint.call("Write", file_path="/workspace/notes/resource.txt", content="as a resource\n")

    async def use():
        async with endpoint.session() as session:
            entries = (await session.list_resources()).resources
            found = next(resource for resource in entries if str(resource.uri).endswith("notes/resource.txt"))
            return (await session.read_resource(found.uri)).contents[0].text

    assert asyncio.run(use()) == "as a resource\n"


def test_requests_without_credentials_are_refused(endpoint, api, server):
    hello = rpc("tools/list", {}, 1)
    for headers in ({}, {"Authorization": "Bearer nonsense"}, {"X-Access-Token": "nonsense"}):
        for path in ("/mcp", "/sse", "/custom-mcp"):
            method = "GET" if path == "/sse" else "POST"
            reply = httpx.request(method, endpoint.base + path, json=hello, headers=headers, timeout=TIMEOUT)
            assert reply.status_code in (401, 403), (path, headers, reply.status_code)


def test_inside_the_token_is_needed_and_pages_are_refused(endpoint, api, sandbox):
    endpoint.call("LS", path=".")
    ask = "curl -s -o /dev/null -w '%{http_code}' -X POST http://127.0.0.1:6060/mcp -d '{}' -H 'content-type: application/json'"
    assert api.run(sandbox, ask)["stdout"] == "401"
    page = f"{ask} -H 'Origin: http://evil.example' -H 'Authorization: Bearer x'"
    assert api.run(sandbox, page)["stdout"] == "403"
    rebound = f"{ask} -H 'Host: evil.example'"
    assert api.run(sandbox, rebound)["stdout"] == "403"


def test_the_tool_server_comes_back_after_its_death(api, server, fresh):
    endpoint = ToolEndpoint.to(api, server, fresh)
    endpoint.call("LS", path=".")
    killed = api.run(fresh, ["pkill", "-KILL", "-x", "sandyard-tools"], user="root")
    assert killed["exit_code"] == 0, killed

    def answers():
        try:
            return not endpoint.call_any("LS", path=".").is_error
        except Exception:
            # A connection may break while the server dies.
            return False

    wait_for(answers, "the tools answer again")


def test_a_paused_sandbox_wakes_and_its_shells_are_there(api, server, fresh):
    endpoint = ToolEndpoint.to(api, server, fresh)
    endpoint.call("Bash", session_name="s", command="export KEPT=yes")
    api.pause(fresh)
    assert "yes" in text(endpoint.call("Bash", session_name="s", command="echo $KEPT"))


def test_unused_it_costs_nothing(api, fresh):
    assert api.run(fresh, "pgrep -x sandyard-tools | wc -l", user="root")["stdout"].strip() == "0"
