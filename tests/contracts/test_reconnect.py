"""`sandyard exec` and `sandyard attach` when the server is killed, restarted or the sandbox paused under them."""

import json
import subprocess

import pytest

from cli import Cli, TerminalCli
from server import Server
from sockets import Socket
from waiting import wait_for

LINES = 20_000


@pytest.fixture(scope="module")
def own_server():
    """A server that may be killed."""
    with Server("--ready", "0") as server:
        yield server


@pytest.fixture
def own_api(own_server):
    if not own_server.is_running():
        own_server.start()  # A test that failed may have left none.
    api = own_server.api()
    yield api
    api.close()


@pytest.fixture
def own_sandbox(own_api):
    sandbox = own_api.create()
    yield sandbox
    own_api.remove(sandbox)


def numbered(count):
    return b"".join(b"line %d\n" % number for number in range(1, count + 1))


def assert_quiet(cli):
    """What a user sees: nothing of WebSockets."""
    assert b"WebSocket" not in cli.stderr and b"error" not in cli.stderr, bytes(cli.stderr)


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_output_and_exit_code_survive_the_end_of_the_server(own_server, own_sandbox, end):
    # A pause every hundred lines, so that the server ends in the middle of them.
    script = f"""for i in $(seq {LINES}); do
        echo "line $i"
        if [ $((i % 100)) = 0 ]; then echo "error $i" >&2; sleep 0.01; fi
    done; exit 7"""
    with Cli(own_server.url, "exec", own_sandbox, "--", "bash", "-c", script) as cli:
        cli.wait_for_output(10_000)
        getattr(own_server, end)()
        assert len(cli.stdout) < len(numbered(LINES)), "the server ended in the middle"
        own_server.start()
        assert cli.wait() == 7, bytes(cli.stderr[-500:])
    assert bytes(cli.stdout) == numbered(LINES)
    errors = [line for line in cli.stderr.splitlines() if not line.startswith(b"sandyard: ")]
    assert errors == [b"error %d" % number for number in range(100, LINES + 1, 100)]


def test_a_command_that_ends_while_no_server_runs_keeps_its_exit_code(own_server, own_sandbox):
    # The host sees its processes, also while no server does.
    script = f"echo before; sleep 1; echo after; exit 7 # {own_sandbox}"
    with Cli(own_server.url, "exec", own_sandbox, "--", "bash", "-c", script) as cli:
        cli.wait_for_output(1)
        own_server.kill()
        wait_for(lambda: not running_on_host(f"^bash -c .*# {own_sandbox}"), "the command ends")
        own_server.start()
        assert cli.wait() == 7, bytes(cli.stderr)
    assert bytes(cli.stdout) == b"before\nafter\n"
    assert_quiet(cli)


def running_on_host(pattern):
    return subprocess.run(["pgrep", "-f", pattern], capture_output=True).returncode == 0


def test_every_byte_of_input_arrives_once_when_the_server_is_killed(own_server, own_sandbox):
    """`cat` answers with what it was given, so both directions are compared at once."""
    data = numbered(60_000)
    with Cli(own_server.url, "exec", "-i", own_sandbox, "--", "cat") as cli:
        cli.write(data[:100_000])
        cli.wait_for_output(100_000)
        cli.write(data[100_000:200_000])
        own_server.kill()
        cli.write(data[200_000:400_000])
        own_server.start()
        cli.write(data[400_000:])
        cli.end_input()
        assert cli.wait() == 0, bytes(cli.stderr)
    assert bytes(cli.stdout) == data
    assert_quiet(cli)


def test_a_terminal_goes_on_when_the_server_is_killed(own_server, own_sandbox):
    with TerminalCli(own_server.url, "exec", "-it", own_sandbox, "--", "bash", "--norc") as cli:
        cli.type("echo before-$((40+2)); stty size\n")
        cli.wait_for("before-42")
        cli.wait_for("24 80")
        own_server.kill()
        cli.wait_for("connection lost; reconnecting")
        cli.resize((132, 43))
        cli.type("echo during-$((40+2))\n")
        own_server.start()
        cli.wait_for("during-42")
        cli.type("stty size\n")
        cli.wait_for("43 132")
        cli.type("exit 7\n")
        assert cli.wait() == 7
    assert b"WebSocket" not in cli.displayed
    assert cli.displayed.count(b"before-42") == 1 and cli.displayed.count(b"during-42") == 1


def test_attach_shows_a_background_command_and_returns_its_exit_code(own_server, own_api, own_sandbox):
    script = "echo early; until test -e /tmp/go; do sleep 0.05; done; echo late; exit 5"
    pid = own_api.run(own_sandbox, script, background=True)["process_id"]
    own_server.kill()
    own_server.start()
    with Cli(own_server.url, "attach", own_sandbox, pid) as cli:
        cli.wait_for_output(len("early\n"))
        own_api.write(own_sandbox, "/tmp/go", "")
        assert cli.wait() == 5, bytes(cli.stderr)
    assert bytes(cli.stdout) == b"early\nlate\n"
    with Cli(own_server.url, "attach", own_sandbox, pid) as repeated:
        assert repeated.wait() == 5, bytes(repeated.stderr)
    assert bytes(repeated.stdout) == b"early\nlate\n"


def test_attach_leaves_the_process_running_and_forwards_input(own_server, own_api, own_sandbox):
    with Socket(own_server.url.replace("http", "ws", 1) + f"/sandboxes/{own_sandbox}/exec") as first:
        first.send(json.dumps({"command": "while read line; do echo got $line; done; exit 4"}))
        pid = json.loads(first.recv())["pid"]
        with Cli(own_server.url, "attach", own_sandbox, pid) as leaver:
            leaver.write(b"one\n")
            leaver.wait_for_output(len("got one\n"))
        with Cli(own_server.url, "attach", own_sandbox, pid) as cli:
            cli.write(b"two\n")
            cli.wait_for_output(len("got one\ngot two\n"))
            cli.end_input()
            assert cli.wait() == 4, bytes(cli.stderr)
        assert bytes(cli.stdout) == b"got one\ngot two\n"


def test_attach_to_no_process_says_so(own_server, own_sandbox):
    with Cli(own_server.url, "attach", own_sandbox, 4_000_000) as cli:
        assert cli.wait() == 125
    assert b"no such process" in cli.stderr


@pytest.mark.parametrize("route", ["pty", "exec"])
def test_input_wakes_a_sandbox_that_was_paused_under_its_stream(own_server, own_api, own_sandbox, route):
    with Socket(own_server.url.replace("http", "ws", 1) + f"/sandboxes/{own_sandbox}/{route}") as socket:
        if route == "exec":
            socket.send(json.dumps({"command": "while read line; do eval $line; done"}))
        assert json.loads(socket.recv())["type"] == "start"
        own_api.pause(own_sandbox)
        socket.send(b"echo awake-$((40+2))\n")
        seen = b""
        while b"awake-42" not in seen:
            message = socket.recv()
            assert isinstance(message, bytes), message
            seen += message
        wait_for(lambda: own_api.status(own_sandbox) == "running", "it runs")
    assert len(own_api.events(own_sandbox, "woken")) == 1
