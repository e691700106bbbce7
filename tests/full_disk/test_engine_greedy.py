"""One sandbox writes all it may, on a host with less room than that."""

import time

from engine_server import MIB, errors_of, image_of, small_server

GREEDY = "dd if=/dev/zero of=/home/user/big bs=4M count=900; sync; echo done"


def test_a_greedy_sandbox_gets_enospc_and_its_neighbours_go_on():
    with small_server() as (disk, _, api):
        neighbours = [api.create() for _ in range(4)]
        greedy = api.create()
        for sandbox in neighbours:
            api.run(sandbox, "dd if=/dev/urandom of=/home/user/mine bs=1M count=1 && sync")
        sums = {sandbox: api.run(sandbox, "sha256sum /home/user/mine")["stdout"] for sandbox in neighbours}
        margin = min(disk.size_mib // 16, 512) * MIB
        pid = api.run(greedy, f"({GREEDY}) > /dev/shm/out 2>&1 &")["process_id"]
        assert pid
        least, attempts = disk.free_bytes, 0
        while "done" not in api.run(greedy, "cat /dev/shm/out")["stdout"]:
            least = min(least, disk.free_bytes)
            # The others write while it does, and what they write is there.
            for number, sandbox in enumerate(neighbours):
                reply = api.run(sandbox, f"echo {attempts} > /home/user/n{attempts} && sync /home/user/n{attempts}")
                assert reply["exit_code"] == 0, (number, attempts, reply, disk.free_bytes)
            attempts += 1
            assert attempts < 10_000
        output = api.run(greedy, "cat /dev/shm/out")["stdout"]
        assert "No space left on device" in output, output
        # It got most of what there was, and the host kept its margin: half of it is where other programs must be at work.
        least = min(least, disk.free_bytes)
        assert least > margin // 2, least
        size = int(api.run(greedy, "stat -c %s /home/user/big")["stdout"])
        assert size > 1000 * MIB, size
        for sandbox in neighbours:
            reply = api.run(sandbox, "dd if=/dev/zero of=/home/user/more bs=1M count=8 conv=fsync")
            assert reply["exit_code"] == 0, (reply, disk.free_bytes)
            assert api.run(sandbox, "sha256sum /home/user/mine")["stdout"] == sums[sandbox]
        for sandbox in [*neighbours, greedy]:
            assert api.status(sandbox) == "running"
            kinds = {event["kind"] for event in api.events(sandbox)}
            assert not kinds & {"vanished", "stopped", "paused", "found"}, kinds
            assert not errors_of(image_of(disk, api, sandbox))
        # With its file gone it can write again.
        api.run(greedy, "rm /home/user/big && sync")
        end = time.monotonic() + 60
        while api.run(greedy, "dd if=/dev/zero of=/home/user/again bs=1M count=200 conv=fsync")["exit_code"]:
            assert time.monotonic() < end, disk.free_bytes
