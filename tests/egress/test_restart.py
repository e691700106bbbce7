"""The server is killed while sandboxes have connections open: nothing hangs, and afterwards it works as before."""

import pytest

from conftest import only
from guest import Guest
from server import Server
from waiting import wait_for

# A program that looks a name up once and then connects to that address for ever, as a connection pool does.
LOYAL = """
import socket, sys, time
address = socket.getaddrinfo("good.test", int(sys.argv[1]), type=socket.SOCK_STREAM)[0][4]
while True:
    try:
        with socket.create_connection(address, 60) as connection:
            connection.sendall(b"GET /loyal HTTP/1.1\\r\\nHost: good.test:%s\\r\\n\\r\\n" % sys.argv[1].encode())
            assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        print("answered", flush=True)
    except Exception as error:
        print("failed", error, flush=True)
    time.sleep(0.1)
"""

# A program with one long connection; says when and how it ends.
FAITHFUL = """
import socket, sys
connection = socket.create_connection(("good.test", int(sys.argv[1])))
connection.sendall(b"hello\\n")
assert connection.recv(6) == b"hello\\n"
print("open", flush=True)
try:
    print("ended" if not connection.recv(1) else "answered", flush=True)
except ConnectionError as error:
    print("ended", type(error).__name__, flush=True)
"""


@pytest.fixture
def own_server(world):
    """A server that may be killed, and a sandbox of it."""
    with Server("--ready", "0", **world.settings) as server:
        api = server.api()
        with Guest(api, world, network=only("good.test")) as guest:
            yield server, guest
        api.close()


def lines(guest, name):
    return guest.run(["cat", f"/tmp/{name}.out"])["stdout"].splitlines()


def start(guest, name, script, *arguments):
    guest.api.write(guest.id, f"/tmp/{name}.py", script)
    guest.run(f"python3 /tmp/{name}.py {' '.join(map(str, arguments))} > /tmp/{name}.out 2>&1", background=True)


def test_open_connections_end_and_new_ones_work_after_kill_9(world, own_server):
    server, guest = own_server
    start(guest, "loyal", LOYAL, world.good.http_port)
    start(guest, "faithful", FAITHFUL, world.echoes.port)
    wait_for(lambda: "answered" in lines(guest, "loyal"), "the first program is answered")
    wait_for(lambda: lines(guest, "faithful") == ["open"], "the second program is connected")
    query_count = len(world.names.was_asked("good.test"))
    server.kill()
    wait_for(lambda: world.echoes.open == 0, "the other side sees the end")
    server.start()
    wait_for(lambda: len(lines(guest, "faithful")) == 2, "the program hears of the end of its connection")
    assert lines(guest, "faithful")[1].startswith("ended")
    # It has not looked the name up again: the address that stands for the name still does.
    seen = len(world.good.requests_for("/loyal"))
    wait_for(lambda: len(world.good.requests_for("/loyal")) > seen, "the address from before still leads to the name")
    assert query_count > 0
    # The policy is in force again, and a new program works without doing anything special.
    assert guest.curl(f"{world.good.http}/echo")["exit_code"] == 0
    assert guest.curl(f"{world.other.http}/echo")["exit_code"] == 6
    assert guest.probe("connect", world.own_address, world.evil_port.port)["outcome"] not in ("answered", "timeout")


def test_a_connection_made_while_no_server_runs_does_not_hang(world, own_server):
    server, guest = own_server
    start(guest, "loyal", LOYAL, world.good.http_port)
    wait_for(lambda: "answered" in lines(guest, "loyal"), "the program is answered")
    server.kill()
    server.start()
    wait_for(lambda: lines(guest, "loyal")[-1:] == ["answered"], "it is answered again")
    server.stop()
    server.start()
    wait_for(lambda: lines(guest, "loyal")[-1:] == ["answered"], "also after an orderly end")


def test_a_policy_changed_before_the_kill_is_the_one_after_it(world, own_server):
    server, guest = own_server
    guest.set_policy(**only("other.test"))
    server.kill()
    server.start()
    # The server answers before it has reached every sandbox again.
    wait_for(lambda: guest.curl(f"{world.other.http}/echo")["exit_code"] == 0, "what the policy allows is reached")
    assert guest.curl(f"{world.good.http}/echo")["exit_code"] == 6
