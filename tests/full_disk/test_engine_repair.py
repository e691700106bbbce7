"""A disk that the kernel has found damaged is repaired when it is mounted next."""

import subprocess

from engine_server import errors_of, image_of, small_server


def test_a_damaged_disk_is_repaired_at_the_next_start_and_the_events_say_so():
    with small_server(SANDBOX_READY="0") as (disk, _, api):
        sandbox = api.create()
        api.run(sandbox, "echo mine > /home/user/mine && sync")
        image = image_of(disk, api, sandbox)
        api.ok("POST", f"/sandboxes/{sandbox}/stop")
        # As the kernel does it when it meets an error: 2 is the flag.
        subprocess.run(["debugfs", "-w", "-R", "ssv state 2", image], check=True, capture_output=True)
        assert errors_of(image)
        assert api.run(sandbox, "cat /home/user/mine")["stdout"] == "mine\n"
        assert not errors_of(image)
        [event] = api.events(sandbox, "disk_repaired")
        assert "e2fsck" in event["data"]["detail"], event
        # Once repaired, it is not repaired again.
        api.ok("POST", f"/sandboxes/{sandbox}/stop")
        assert api.run(sandbox, "echo more")["stdout"] == "more\n"
        assert len(api.events(sandbox, "disk_repaired")) == 1
