"""What may be asked for follows from the host, and a host that is short of memory makes no more sandboxes."""

import os
from pathlib import Path

import pytest

from server import Server

MIB = 1 << 20


def host():
    """What half of the memory, all cores, a quarter of the process ids and half of the disk are."""
    memory = next(int(line.split()[1]) * 1024 for line in Path("/proc/meminfo").read_text().splitlines() if "MemTotal" in line)
    pids = min(int(Path("/proc/sys/kernel", name).read_text()) for name in ("pid_max", "threads-max"))
    disk = os.statvfs("/var/tmp")
    return {
        "memory_limit": memory // 2,
        "cpu_limit": len(os.sched_getaffinity(0)),
        "pids_limit": pids // 4,
        "disk_limit": disk.f_blocks * disk.f_frsize // 2,
    }


@pytest.mark.parametrize("limit", ["memory_limit", "cpu_limit", "pids_limit", "disk_limit"])
def test_no_user_gets_more_than_its_share_of_the_host(api, limit):
    request_log = host()[limit] + (MIB if limit in ("memory_limit", "disk_limit") else 1)
    refused = api.post("/sandboxes/create", {"user_id": "bob", limit: request_log if limit in ("pids_limit", "cpu_limit") else f"{request_log // MIB}m"})
    assert refused.status_code in (400, 422), refused.text
    assert f"`{limit}` must be between" in refused.text and "(got " in refused.text


def test_what_the_operator_decides_goes_above_the_hosts_share():
    maxima = host()
    with Server(LIMITS_MAX_MEMORY=f"{maxima['memory_limit'] * 4 // MIB}m", LIMITS_MAX_PIDS=maxima["pids_limit"] + 100) as server:
        api = server.api()
        sandbox = api.create(memory_limit=f"{maxima['memory_limit'] * 2 // MIB}m", pids_limit=maxima["pids_limit"] + 1)
        assert api.run(sandbox, "true")["exit_code"] == 0
        api.remove(sandbox)
        api.close()


def test_a_host_that_is_short_of_memory_makes_no_more_sandboxes():
    with Server(LIMITS_MEMORY_RESERVE="1t") as server:
        api = server.api()
        refused = api.post("/sandboxes/create", {"user_id": "bob"})
        assert refused.status_code == 503, refused.text
        assert refused.json()["code"] == "no_capacity"
        api.close()
