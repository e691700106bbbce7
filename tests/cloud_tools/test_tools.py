"""Every sandbox has its tools, also where somebody else makes it and somebody else's agent is inside."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from client import ToolEndpoint, text
from clouds import TOOLS_PORT
from waiting import wait_for

ECHO = (Path(__file__).parents[1] / "mcp/echo_server.py").read_text()

# Says which headers it was shown.
OWN_SERVER = """
import http.server, sys

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = ("mine\\n" + str(self.headers)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def names(endpoint):
    async def list_tools():
        async with endpoint.session() as session:
            return {tool.name for tool in (await session.list_tools()).tools}

    return asyncio.run(list_tools())


def serve_own(guest, port):
    """Has a program of the user's own listen on a port."""
    guest.api.write(guest.id, "/tmp/own.py", OWN_SERVER)
    guest.api.run(guest.id, f"python3 /tmp/own.py {port}", background=True)
    connect = f"import socket; socket.create_connection(('127.0.0.1', {port}))"
    wait_for(lambda: guest.sh(f'python3 -c "{connect}" 2>/dev/null && echo up || true') == "up", "it listens")


def test_tools_are_listed_and_called(guest):
    endpoint = guest.endpoint
    assert {"Bash", "Read", "Write", "run_command", "Grep"} <= names(endpoint)
    assert "Linux" in text(endpoint.call("run_command", command="uname -s"))
    endpoint.call("Write", file_path="notes/a.txt", content="one\ntwo\n")
    assert "two" in text(endpoint.call("Read", file_path="notes/a.txt"))
    # The same files and the same user as those of commands.
    folder = guest.sh("[ -w /workspace ] && echo /workspace || echo ~")
    assert guest.sh(f"cat {folder}/notes/a.txt") == "one\ntwo"
    assert guest.sh("id -un") in text(endpoint.call("run_command", command="id -un"))


def test_it_is_the_program_that_was_brought_in(guest):
    guest.endpoint.call("TodoRead")
    command = guest.sh("tr '\\0' ' ' <\"/proc/$(cat ~/.sandyard/tools.pid)/cmdline\"")
    assert "/.sandyard/agent-" in command and " tool-server --settings " in command
    # What it was told is gone, and nobody else could have read it.
    assert guest.sh("ls ~/.sandyard/tools-* 2>/dev/null || echo none") == "none"
    assert guest.sh("stat -c %a ~/.sandyard") == "700"


def test_the_servers_own_tools_lead_there(guest):
    control = ToolEndpoint(f"{guest.server.url}/mcp", guest.server.admin_key)
    assert "Bash" in text(control.call("sandbox_tools", sandbox_id=guest.id))
    call = {"sandbox_id": guest.id, "tool": "run_command", "arguments": {"command": "echo relayed"}}
    assert "relayed" in text(control.call("sandbox_call_tool", **call))


def test_one_call_sets_it_all_up(guest):
    guest.api.write(guest.id, "/tmp/echo_server.py", ECHO)
    echo = {"command": "python3", "args": ["/tmp/echo_server.py"], "env": {"GREETING": "hello"}}
    expected = {"sandbox_id": guest.id, "mcp_config": {"mcpServers": {"mine": echo}}, "credential": {"user_api_key": "k"}}
    # It has to be started, on a machine that is busy with other things.
    expected["timeout"] = 120
    answer = guest.api.ok("POST", "/sandboxes/setup-mcp", expected)
    assert answer["mcp_url"] == guest.endpoint.url
    assert {"Bash", "mcp_mine_echo"} <= set(answer["tools"])
    assert text(guest.endpoint.call("mcp_mine_echo", text="to you")) == "hello to you"


def test_requests_without_credentials_are_refused(guest):
    guest.endpoint.call("TodoRead")
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"X-Access-Token": "wrong"}):
        for path in ("mcp", "health"):
            assert guest.port(TOOLS_PORT, path, headers).status_code in (401, 403)
    # Its own door asks for more than who may see a port has.
    for displayed in ({}, {"X-Access-Token": "wrong"}):
        for path in ("mcp", "sse"):
            refused = guest.port(9984, path, {**guest.endpoint.headers, **displayed})
            assert refused.status_code in (401, 403), refused.text
    inside = f"import urllib.request as r; print(r.urlopen('http://127.0.0.1:{TOOLS_PORT}/%s').status)"
    assert guest.sh(f'python3 -c "{inside % "health"}"') == "200"
    assert "401" in guest.sh(f'python3 -c "{inside % "mcp"}" 2>&1 || true')


def test_a_server_that_is_started_again_finds_it_as_it_was(guest):
    guest.endpoint.call("Bash", session_name="kept", command="LASTS=yes")
    before = guest.tool_server
    guest.server.kill()
    guest.server.start()
    assert "yes" in text(guest.endpoint.call("Bash", session_name="kept", command="echo $LASTS"))
    assert guest.tool_server == before


def test_after_its_death_it_is_started_again(fresh):
    fresh.endpoint.call("TodoRead")
    before = fresh.tool_server
    fresh.sh(f"kill -KILL {before}")
    # Who comes at once may find what was known a moment ago.
    wait_for(lambda: fresh.plain("echo again").status_code == 200, "it answers again")
    assert fresh.tool_server not in (None, before)


def test_many_at_once_start_one(fresh):
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda number: fresh.plain(f"echo {number}"), range(6)))
    assert [answer.status_code for answer in answers] == [200] * 6
    assert fresh.sh("ps -eo args | grep -c '[t]ool-server --settings'") == "1"


def test_it_is_there_again_after_a_rest(fresh):
    fresh.plain("touch ~/kept")
    fresh.api.pause(fresh.id)
    assert "kept" in fresh.plain("ls ~").text
    fresh.api.ok("POST", f"/sandboxes/{fresh.id}/stop")
    assert "kept" in fresh.plain("ls ~").text


def test_a_program_of_the_users_own_is_left_alone(fresh):
    serve_own(fresh, TOOLS_PORT)
    seen = fresh.port(TOOLS_PORT, "page", {**fresh.endpoint.headers, "X-Mark": "passed on"})
    assert seen.status_code == 200 and seen.text.startswith("mine"), seen.text
    assert "passed on" in seen.text
    assert "token" not in seen.text.lower() and "authorization" not in seen.text.lower(), seen.text
    assert fresh.tool_server is None


def test_missing_requirements_are_reported(fresh):
    # Another program listens on its port.
    serve_own(fresh, 9984)
    refused = fresh.plain("echo never")
    assert refused.status_code == 409 and "9984" in refused.text, refused.text

    def is_said():
        setup = fresh.api.post("/sandboxes/setup-mcp", {"sandbox_id": fresh.id})
        # On a busy machine all of it may take longer than one call has.
        assert setup.status_code == 408 or (setup.status_code == 409 and "9984" in setup.text), setup.text
        return setup.status_code == 409

    wait_for(is_said, "it is said when it is set up, too")
