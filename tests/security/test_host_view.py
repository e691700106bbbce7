"""What a sandbox can see of the host."""

import os


def test_mounts_do_not_tell_where_the_host_keeps_its_data(server, sandbox, api):
    mounts = api.run(sandbox, "cat /proc/self/mountinfo")["stdout"]
    assert "boot_id" in mounts
    parts = [str(server.data.path), os.path.realpath(server.data.path / "run"), "sandyard-"]
    outcome = [word for word in parts if word in mounts]
    assert not outcome, mounts


def test_the_hosts_pressure_can_be_neither_read_nor_watched(sandbox, api):
    assert api.run(sandbox, "ls /proc/pressure")["stdout"].split() == []
    watch = "sudo python3 -c \"open('/proc/pressure/memory', 'r+').write('some 500000 2000000')\""
    assert api.run(sandbox, watch)["exit_code"] != 0


def test_a_sandbox_is_ended_before_programs_of_the_host(sandbox, api):
    first, command = (int(line) for line in api.run(sandbox, "cat /proc/1/oom_score_adj /proc/self/oom_score_adj")["stdout"].split())
    assert 0 < first < command
    # Root inside cannot go below what the launcher has.
    lower = "sudo sh -c 'echo -1000 >/proc/self/oom_score_adj'"
    assert api.run(sandbox, lower)["exit_code"] != 0
