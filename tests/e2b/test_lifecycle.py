"""How long sandboxes live, what a pause keeps, and what brings them back."""

from datetime import datetime, timedelta, timezone

import e2b
import pytest
from e2b import SandboxNotFoundException, SandboxState

from features import FEATURES, NotRunning, without_memory
from starts import BOOT
from waiting import wait_for

# Has its number in memory alone; the file is for us to look at.
COUNTER = """
import os, time
n = 0
while True:
    n += 1
    with open("/tmp/n.new", "w") as file:
        file.write(str(n))
    os.rename("/tmp/n.new", "/tmp/n")
    time.sleep(0.02)
"""


def remaining_seconds(sandbox):
    """Seconds until its time is over."""
    return (sandbox.get_info().end_at - datetime.now(timezone.utc)).total_seconds()


def state(half, sandbox):
    """Its state, or none when it is gone."""
    try:
        return half.Sandbox.get_info(sandbox.sandbox_id).state
    except SandboxNotFoundException:
        return None


def until(half, sandbox, expected):
    wait_for(lambda: state(half, sandbox) == expected, lambda: f"{expected}, but it is {state(half, sandbox)}")


# --- time


def test_set_timeout_lengthens_and_shortens(half, make):
    sandbox = make(timeout=400)
    sandbox.set_timeout(2000)
    assert 1800 < remaining_seconds(sandbox) <= 2001
    half.Sandbox.set_timeout(sandbox.sandbox_id, 300)
    assert 100 < remaining_seconds(sandbox) <= 301


def test_connect_extends_but_never_shortens(half, make):
    sandbox = make(timeout=1000)
    half.Sandbox.connect(sandbox.sandbox_id, timeout=20)
    assert remaining_seconds(sandbox) > 800
    sandbox.connect(timeout=2000)
    assert 1800 < remaining_seconds(sandbox) <= 2001
    sandbox.connect()
    assert remaining_seconds(sandbox) > 1700


def test_time_over_ends_a_sandbox(half, make):
    sandbox = make(timeout=1)
    until(half, sandbox, None)
    assert sandbox.is_running() is False
    with pytest.raises(NotRunning):
        sandbox.commands.run("true")


def test_no_time_at_all_ends_it_now(half, fresh_sandbox):
    fresh_sandbox.set_timeout(0)
    until(half, fresh_sandbox, None)


def test_work_does_not_keep_it_alive(half, make):
    """The end is fixed: unlike our own dialects, E2B's knows no idleness."""
    sandbox = make(timeout=600)
    end = sandbox.get_info().end_at
    sandbox.commands.run("true")
    sandbox.files.write("x", "y")
    assert sandbox.get_info().end_at == end

    def works():
        try:
            return sandbox.commands.run("true").exit_code == 0
        except e2b.SandboxException:
            # It has ended, be it before the command or with it.
            return False

    sandbox.set_timeout(2)
    wait_for(lambda: not works(), "it ends in the middle of its work")
    until(half, sandbox, None)


def test_time_over_pauses_when_asked(half, make):
    sandbox = make(timeout=1, lifecycle={"on_timeout": "pause"})
    until(half, sandbox, SandboxState.PAUSED)
    repeated = half.Sandbox.connect(sandbox.sandbox_id, timeout=600)
    assert repeated.commands.run("echo back").stdout == "back\n"
    assert 400 < remaining_seconds(repeated) <= 601


def test_impossible_times_are_refused(half, fresh_sandbox):
    for seconds in (-1, 10**9):
        with pytest.raises(e2b.SandboxException):
            half.Sandbox.create(timeout=seconds)
        with pytest.raises(e2b.SandboxException):
            fresh_sandbox.set_timeout(seconds)


# --- pause


def test_pause_keeps_processes_and_memory(half, fresh_sandbox):
    boot = fresh_sandbox.commands.run(BOOT).stdout
    fresh_sandbox.files.write("/tmp/counter.py", COUNTER)
    fresh_sandbox.commands.run("exec python3 -m http.server 3456", background=True, timeout=0)
    handle = fresh_sandbox.commands.run("exec python3 /tmp/counter.py", background=True, timeout=0)
    wait_for(lambda: fresh_sandbox.files.exists("/tmp/n"), "it counts")
    listens = "curl -sf -o /dev/null http://127.0.0.1:3456/ && echo listens || true"
    wait_for(lambda: fresh_sandbox.commands.run(listens).stdout, "it listens")
    assert fresh_sandbox.pause() is True
    assert state(half, fresh_sandbox) == SandboxState.PAUSED
    assert fresh_sandbox.is_running() is False
    repeated = half.Sandbox.connect(fresh_sandbox.sandbox_id)
    assert repeated.sandbox_id == fresh_sandbox.sandbox_id
    assert repeated.commands.run(BOOT).stdout == boot
    assert handle.pid in [process.pid for process in repeated.commands.list()]
    count = int(repeated.files.read("/tmp/n"))
    wait_for(lambda: int(repeated.files.read("/tmp/n")) > count, "it counts on")
    assert repeated.commands.run(listens).stdout == "listens\n"


def test_pause_of_the_files_alone_is_a_new_start(half, fresh_sandbox):
    boot = fresh_sandbox.commands.run(BOOT).stdout
    fresh_sandbox.files.write("kept.txt", "kept")
    handle = fresh_sandbox.commands.run("sleep 1000", background=True)
    assert fresh_sandbox.pause(**without_memory()) is True
    assert state(half, fresh_sandbox) == SandboxState.PAUSED
    repeated = half.Sandbox.connect(fresh_sandbox.sandbox_id)
    assert repeated.files.read("kept.txt") == "kept"
    assert repeated.commands.run(BOOT).stdout != boot
    assert handle.pid not in [process.pid for process in repeated.commands.list() if "sleep 1000" in str(process.args)]


def test_second_pause_says_there_was_nothing_to_do(half, fresh_sandbox):
    assert half.Sandbox.pause(fresh_sandbox.sandbox_id) is True
    assert fresh_sandbox.pause() is False
    assert fresh_sandbox.beta_pause() is False
    fresh_sandbox.connect()
    assert fresh_sandbox.beta_pause() is True


def test_paused_sandbox_answers_nothing_until_it_is_resumed(fresh_sandbox):
    fresh_sandbox.pause()
    for call in (lambda: fresh_sandbox.commands.run("true"), lambda: fresh_sandbox.files.read("/etc/hostname"), lambda: fresh_sandbox.files.list("/")):
        with pytest.raises(NotRunning):
            call()
    assert fresh_sandbox.connect().commands.run("echo back").stdout == "back\n"
    assert fresh_sandbox.commands.run("echo same object").stdout == "same object\n"


def test_files_survive_many_pauses(half, fresh_sandbox):
    for number in range(4):
        fresh_sandbox.files.write(f"file-{number}", str(number))
        fresh_sandbox.pause(**(without_memory() if number % 2 else {}))
        fresh_sandbox.connect()
        assert [fresh_sandbox.files.read(f"file-{n}") for n in range(number + 1)] == [str(n) for n in range(number + 1)]


def test_paused_sandbox_can_be_killed(half, fresh_sandbox):
    fresh_sandbox.pause()
    assert fresh_sandbox.kill() is True
    assert state(half, fresh_sandbox) is None


def test_paused_sandbox_keeps_its_environment_and_metadata(half, make):
    sandbox = make(envs={"GIVEN": "value"}, metadata={"k": "v"})
    sandbox.pause(**without_memory())
    repeated = half.Sandbox.connect(sandbox.sandbox_id)
    assert repeated.commands.run("echo $GIVEN").stdout == "value\n"
    assert repeated.get_info().metadata == {"k": "v"}


@pytest.mark.needs("on_resume")
def test_reboot_drops_the_memory_of_a_pause(half, fresh_sandbox):
    boot = fresh_sandbox.commands.run(BOOT).stdout
    fresh_sandbox.files.write("kept.txt", "kept")
    fresh_sandbox.pause()
    repeated = half.Sandbox.connect(fresh_sandbox.sandbox_id, on_resume="reboot")
    assert repeated.commands.run(BOOT).stdout != boot
    assert repeated.files.read("kept.txt") == "kept"
    boot = repeated.commands.run(BOOT).stdout
    repeated.connect(on_resume="reboot")
    assert repeated.commands.run(BOOT).stdout == boot, "it was running"


@pytest.mark.needs("strict_pause")
def test_strict_pause_of_a_healthy_sandbox(half, fresh_sandbox):
    assert fresh_sandbox.pause(strict=True) is True
    assert half.Sandbox.connect(fresh_sandbox.sandbox_id).commands.run("echo back").stdout == "back\n"


# --- auto-resume


def test_a_request_wakes_what_was_made_so(half, make):
    sandbox = make(timeout=300, lifecycle={"on_timeout": "pause", "auto_resume": True})
    handle = sandbox.commands.run("sleep 1000", background=True)
    sandbox.pause()
    assert state(half, sandbox) == SandboxState.PAUSED
    assert sandbox.commands.run("echo woken").stdout == "woken\n"
    assert handle.pid in [process.pid for process in sandbox.commands.list()]
    sandbox.pause()
    sandbox.files.write("woken.txt", "by a file")
    assert state(half, sandbox) == SandboxState.RUNNING


def test_nothing_wakes_what_was_not(half, make):
    sandbox = make(timeout=300, lifecycle={"on_timeout": "pause", "auto_resume": False})
    sandbox.pause()
    with pytest.raises(NotRunning):
        sandbox.commands.run("true")
    assert state(half, sandbox) == SandboxState.PAUSED


def test_questions_during_a_pause_do_not_wake_it(half, make):
    sandbox = make(timeout=600, lifecycle={"on_timeout": "pause", "auto_resume": False})
    for _ in range(20):
        sandbox.set_timeout(0)
        wait_for(lambda: not sandbox.is_running(), "it does not run")
        assert (state(half, sandbox), sandbox.is_running()) == (SandboxState.PAUSED, False)
        sandbox.connect(timeout=600)


def test_time_over_may_keep_the_files_alone(half, make):
    option = {"mode": "filesystem"} if FEATURES["pause_mode"] else {"keep_memory": False}
    sandbox = make(timeout=600, lifecycle={"on_timeout": {"action": "pause", **option}})
    boot = sandbox.commands.run(BOOT).stdout
    sandbox.set_timeout(0)
    until(half, sandbox, SandboxState.PAUSED)
    assert sandbox.connect(timeout=600).commands.run(BOOT).stdout != boot


def test_metrics_have_a_point_soon_and_keep_to_the_span_asked_for(half, make):
    sandbox = make(timeout=600)
    points = wait_for(lambda: sandbox.get_metrics(), "a first point")
    point = points[0]
    assert point.cpu_count >= 1 and point.cpu_used_pct >= 0
    assert 0 < point.mem_used <= point.mem_total and 0 <= point.mem_cache <= point.mem_total
    assert 0 <= point.disk_used <= point.disk_total
    now = datetime.now(timezone.utc)
    assert abs(now - point.timestamp) < timedelta(seconds=200)
    assert half.Sandbox.get_metrics(sandbox.sandbox_id, start=now - timedelta(minutes=5), end=now + timedelta(minutes=5))
    assert sandbox.get_metrics(start=now - timedelta(days=2), end=now - timedelta(days=1)) == []
