"""Time-outs end all of a command, also what it put into the background; nothing dead is left unreaped."""

import contextlib
import os

import pytest
from e2b import TimeoutException

from processes import unique_seconds, with_argument, with_mark, zombies_below
from waiting import wait_for


# Time limits to try a command with: a short one may be over before a busy machine has started it.
LIMITS = (3, 60)


def sessions_of(mark):
    sessions = set()
    for pid in with_mark(mark):
        # One of them may end while we look.
        with contextlib.suppress(ProcessLookupError):
            sessions.add(os.getsid(pid))
    return sessions


def start(sandbox, command, has_begun):
    """Starts a command with a time limit and waits until it has begun; its handle and its mark, which is put into it."""
    for limit in LIMITS:
        mark = unique_seconds()
        try:
            # Its start, too, is under the limit.
            handle = sandbox.commands.run(command.format(mark=mark), background=True, timeout=limit)
            wait_for(lambda: has_begun(mark), "the command has begun", limit)
        except (AssertionError, TimeoutException):
            if limit == LIMITS[-1]:
                raise
            continue
        return handle, mark


def test_timed_out_command_raises_and_is_dead(sandbox):
    mark = unique_seconds()
    with pytest.raises(TimeoutException):
        sandbox.commands.run(f"exec sleep {mark}", timeout=1)
    wait_for(lambda: not with_mark(mark), "the command is dead")


def test_time_out_kills_a_daemon_that_forked_twice_and_left_the_session(sandbox):
    # The subshell and the inner shell end at once: the sleep is an orphan in a session of its own. The shell stays,
    # since something is left to do after its own sleep.
    command = "(setsid sh -c 'sleep {mark} & exit' &); sleep {mark}; true"
    handle, mark = start(sandbox, command, lambda mark: len(with_mark(mark)) == 3 and len(sessions_of(mark)) == 2)
    with pytest.raises(TimeoutException):
        handle.wait()
    wait_for(lambda: not with_mark(mark), "the whole tree is dead")


def test_time_out_kills_a_tree_that_ignores_signals(sandbox):
    mark = unique_seconds()
    with pytest.raises(TimeoutException):
        sandbox.commands.run(f"trap '' TERM INT HUP; sleep {mark}; sleep {mark}", timeout=1)
    wait_for(lambda: not with_mark(mark), "the tree is dead")


def test_time_out_holds_though_the_client_left(sandbox):
    handle, mark = start(sandbox, "sleep {mark}", with_mark)
    handle.disconnect()
    wait_for(lambda: not with_mark(mark), "the command is dead")


def test_command_ends_though_a_daemon_holds_its_output(sandbox):
    mark = unique_seconds()
    result = sandbox.commands.run(f"sleep {mark} & echo started", timeout=120)
    assert result.stdout == "started\n"
    # For a moment, between its fork and its own name, it has its shell's.
    wait_for(lambda: len(with_argument(mark)) == 1, "a background process outlives a command that ended in time")
    sandbox.commands.run(f"kill $(grep -lazE '^{mark}$' /proc/[0-9]*/cmdline | cut -d/ -f3)", user="root")
    wait_for(lambda: not with_mark(mark), "the daemon is dead")


def test_orphans_are_reaped(sandbox, agent):
    sandbox.commands.run("for i in $(seq 50); do (true & true &) & done; wait")
    wait_for(lambda: not zombies_below(agent.pid), lambda: f"no zombies; left: {zombies_below(agent.pid)}")
