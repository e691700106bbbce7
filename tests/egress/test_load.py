"""Many connections and many sandboxes at once. Speed is reported and decides nothing."""

from concurrent.futures import ThreadPoolExecutor

import pytest

import processes
from api import stopwatch
from guest import Guest

CONNECTIONS = 1000
SANDBOXES = 100
SIZE = 4 << 20
MOST_GROWTH = 300 << 20


def test_a_thousand_connections_of_one_sandbox_all_answer(world, server, make):
    guest = make()
    processes.reset_peak(server.pid)
    before = processes.memory_bytes(server.pid)
    elapsed = stopwatch()
    probe = guest.probe("open_many", "good.test", world.echoes.port, CONNECTIONS)
    print(f"\n{CONNECTIONS} connections in {elapsed():.1f} s, most at once {world.echoes.limit}")
    assert probe["right"] == CONNECTIONS, probe["wrong"]
    assert world.echoes.limit >= CONNECTIONS
    growth = processes.memory_bytes(server.pid, "VmHWM") - before
    print(f"the server grew by {growth >> 20} MiB")
    assert growth < MOST_GROWTH


@pytest.mark.timeout(600)
def test_a_hundred_sandboxes_download_at_once_and_all_finish(world, server, api):
    small = {"memory_limit": "64m"}
    with ThreadPoolExecutor(8) as pool:
        created = list(pool.map(lambda number: Guest(api, world, user_id=f"load-{number}", **small), range(SANDBOXES)))
    try:
        processes.reset_peak(server.pid)
        before = processes.memory_bytes(server.pid)
        command = f"curl -sS -o /tmp/file -w '%{{size_download}} %{{time_total}}' {world.good.http}/bytes/{SIZE}"
        elapsed = stopwatch()
        with ThreadPoolExecutor(SANDBOXES) as pool:
            outcome = [ran.split() for ran in pool.map(lambda guest: guest.output(command, timeout=290), created)]
        seconds = sorted(float(time) for _, time in outcome)
        rate = SANDBOXES * SIZE / elapsed() / 1e6
        print(f"\n{SANDBOXES} downloads of {SIZE >> 20} MiB: {elapsed():.1f} s, {rate:.0f} MB/s together;", end=" ")
        print(f"fastest {seconds[0]:.2f} s, median {seconds[SANDBOXES // 2]:.2f} s, slowest {seconds[-1]:.2f} s")
        assert {int(size) for size, _ in outcome} == {SIZE}
        growth = processes.memory_bytes(server.pid, "VmHWM") - before
        print(f"the server grew by {growth >> 20} MiB")
        assert growth < MOST_GROWTH
        # What came is what was counted, for each sandbox separately.
        for guest in created[::10]:
            flow = guest.flow(name="good.test", verdict="allowed", protocol="tcp")
            assert SIZE <= flow["received_bytes"] <= SIZE + 1024
    finally:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda guest: guest.remove(), created))


def test_one_greedy_sandbox_does_not_block_egress_of_others(world, make):
    """While one holds as many connections as it may, another is answered."""
    greedy, modest = make(), make()
    script = (
        "import socket, time\n"
        "held = []\n"
        "while True:\n"
        "    try: held.append(socket.create_connection(('good.test', {port}), 60))\n"
        "    except OSError: time.sleep(0.01)\n"
        "    if len(held) > 4000: time.sleep(1000)\n"
    ).format(port=world.echoes.port)
    greedy.run(["python3", "-c", script], background=True)
    for _ in range(20):
        assert modest.curl(f"{world.good.http}/echo")["exit_code"] == 0
