"""The output of commands outlives the server, the launcher and the sandbox."""

import contextlib
import os
import signal
import subprocess
import threading
import uuid

import pytest

import processes
from server import Server
from waiting import wait_for

# A debug build on two busy cores may take its time; nothing is measured by this.
TIMEOUT = 180
LINES = 100_000


@pytest.fixture
def own_server():
    """A server that may be killed."""
    with Server("--ready", "0") as server:
        yield server


def pages(api, sandbox):
    """All lines that are kept, read page by page."""
    after = 0
    while True:
        page = api.ok("GET", f"/sandboxes/{sandbox}/logs?after={after}&tail=10000")
        yield from page["logs"]
        if not page["has_more"]:
            return
        after = page["logs"][-1]["seq"]


def output(api, sandbox, pid):
    return [line["text"] for line in pages(api, sandbox) if line["pid"] == pid]


def newest(api, sandbox, pid):
    """The number in the last line that a counting command has in the log."""
    lines = api.ok("GET", f"/sandboxes/{sandbox}/logs?tail=50")["logs"]
    numbers = [int(line["text"]) for line in lines if line["pid"] == pid]
    return numbers[-1] if numbers else 0


def ends(api, sandbox, pid):
    return [event["data"] for event in api.events(sandbox, "command_ended") if event["data"]["pid"] == pid]


def counting(last):
    return [str(number) for number in range(1, last + 1)]


def test_100000_lines_survive_two_kills_of_the_server_one_of_the_launcher_and_a_delete(own_server):
    api = own_server.api()
    sandbox = api.create()
    # In steps, so that it writes before, while and after each of them is away.
    script = "for i in {0..99}; do seq $((i*1000+1)) $((i*1000+1000)); sleep 0.05; done; exit 7"
    pid = api.run(sandbox, script, background=True)["process_id"]
    has = lambda count: wait_for(lambda: newest(api, sandbox, pid) >= count, f"{count} lines are in the log", TIMEOUT)  # noqa: E731
    has(5_000)
    own_server.kill()
    own_server.start()
    has(30_000)
    for launcher in own_server.data.launchers():
        os.kill(launcher, signal.SIGKILL)
    has(45_000)
    own_server.kill()
    own_server.start()
    wait_for(lambda: ends(api, sandbox, pid), "its end is in the history", TIMEOUT)
    assert output(api, sandbox, pid) == counting(LINES)
    (end,) = ends(api, sandbox, pid)
    assert end["exit_code"] == 7 and end["duration_ms"] >= 5000, end
    api.remove(sandbox)
    assert output(api, sandbox, pid) == counting(LINES)
    own_server.kill()
    own_server.start()
    assert output(api, sandbox, pid) == counting(LINES), "nothing is gone or written twice after another start"
    assert len(ends(api, sandbox, pid)) == 1
    api.close()


def test_a_command_that_ends_while_no_server_runs_is_recorded_whole(own_server):
    """More output than the agent keeps in memory, and the end with its exit code."""
    api = own_server.api()
    sandbox = api.create()
    marker = f"marker-{uuid.uuid4().hex}"
    last = 400_000
    # It goes on only when it has been left alone, which is when the server is gone.
    wait = 'while [ -e /tmp/wait ] && [ "$(( $(date +%s) - $(stat -c %Y /tmp/wait) ))" -lt 3 ]; do sleep 0.1; done'
    script = f"touch /tmp/wait; {wait}; seq {last}; echo -n unfinished; echo error >&2; exit 9 # {marker}"
    pid = api.run(sandbox, script, background=True)["process_id"]
    own_server.kill()
    wait_for(lambda: not processes.with_argument(script), "it ends while no server runs", TIMEOUT)
    own_server.start()
    wait_for(lambda: ends(api, sandbox, pid), "its end is in the history", TIMEOUT)
    lines = output(api, sandbox, pid)
    assert sorted(lines[last:]) == ["error", "unfinished"]
    assert lines[:last] == counting(last)
    (end,) = ends(api, sandbox, pid)
    assert end["exit_code"] == 9, end
    api.close()


def test_a_background_command_goes_on_while_its_log_has_no_room(own_server):
    """And all of its output is in the log when there is room again."""
    last = 400_000
    logs = own_server.data.path / "logs"
    logs.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m,mode=700", "tmpfs", logs], check=True)
    try:
        api = own_server.api()
        sandbox = api.create()
        filler = logs / "filler"
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(bytes(4096)):
                pass
        script = f"seq {last}; exit 4 # marker-{uuid.uuid4().hex}"
        pid = api.run(sandbox, script, background=True)["process_id"]
        wait_for(lambda: not processes.with_argument(script), "it ends while the disk is full", TIMEOUT)
        assert not ends(api, sandbox, pid)
        filler.unlink()
        wait_for(lambda: ends(api, sandbox, pid), "its end is in the history", TIMEOUT)
        assert output(api, sandbox, pid) == counting(last)
        (end,) = ends(api, sandbox, pid)
        assert end["exit_code"] == 4, end
        api.close()
    finally:
        subprocess.run(["umount", "--lazy", logs], check=True)


def test_a_command_in_the_foreground_is_recorded_to_its_end_when_its_server_is_killed(own_server):
    api = own_server.api()
    sandbox = api.create()
    script = "echo begun; sleep 3; echo done; exit 5"
    runner = threading.Thread(target=lambda: pytest.raises(Exception, api.run, sandbox, script))
    runner.start()
    texts = lambda: [line["text"] for line in pages(api, sandbox)]  # noqa: E731
    wait_for(lambda: "begun" in texts(), "it has begun", TIMEOUT)
    own_server.kill()
    runner.join()
    own_server.start()
    recorded = lambda: [event["data"]["exit_code"] for event in api.events(sandbox, "command_ended")]  # noqa: E731
    wait_for(recorded, "its end is in the history", TIMEOUT)
    assert recorded() == [5]
    assert [text for text in texts() if text in ("begun", "done")] == ["begun", "done"]
    api.close()


def test_the_end_of_a_background_command_is_an_event(api, sandbox):
    pid = api.run(sandbox, "echo out; echo err >&2; sleep 0.1; exit 3", background=True)["process_id"]
    wait_for(lambda: ends(api, sandbox, pid), "its end is in the history", TIMEOUT)
    (end,) = ends(api, sandbox, pid)
    # Counted from when the server learned of its start, which may be a moment after it.
    assert end["exit_code"] == 3 and end["duration_ms"] > 0, end
    lines = [(line["source"], line["text"]) for line in pages(api, sandbox) if line["pid"] == pid]
    assert sorted(lines) == [("stderr", "err"), ("stdout", "out")]


def test_a_background_command_is_heard_again_after_a_pause(api, sandbox):
    pid = api.run(sandbox, "for i in {1..100}; do echo $i; sleep 0.02; done", background=True)["process_id"]
    wait_for(lambda: newest(api, sandbox, pid) >= 3, "it writes", TIMEOUT)
    api.pause(sandbox)
    api.ok("POST", f"/sandboxes/{sandbox}/resume")
    wait_for(lambda: ends(api, sandbox, pid), "its end is in the history", TIMEOUT)
    assert output(api, sandbox, pid) == counting(100)
    assert len(ends(api, sandbox, pid)) == 1


def test_the_oldest_output_goes_first_and_the_log_says_so():
    with Server("--ready", "0", LOGS_MAX_PER_SANDBOX="1m") as server:
        api = server.api()
        sandbox = api.create()
        api.run(sandbox, "seq 400000 > /dev/stderr; echo last")
        page = api.ok("GET", f"/sandboxes/{sandbox}/logs?after=0&tail=10")
        assert page["dropped_lines"] > 100_000 and page["has_more"]
        first = page["logs"][0]
        assert first["seq"] == page["dropped_lines"] + 1 == int(first["text"])
        # Not the last line: the two streams of a command come in no order between them.
        assert "last" in [line["text"] for line in pages(api, sandbox)]
        folder = server.data.path / "logs" / sandbox
        assert sum(file.stat().st_size for file in folder.iterdir()) < 1_300_000
        api.close()
