"""Time-outs end all of a command, also what it put into the background; nothing dead is left unreaped."""

import os

import pytest
from e2b import TimeoutException

from processes import unique_seconds, with_mark, zombies_below
from waiting import wait_for


def sessions_of(mark):
    return {os.getsid(pid) for pid in with_mark(mark)}


def test_timed_out_command_raises_and_is_dead(sandbox):
    mark = unique_seconds()
    with pytest.raises(TimeoutException):
        sandbox.commands.run(f"exec sleep {mark}", timeout=1)
    wait_for(lambda: not with_mark(mark), "the command is dead")


def test_time_out_kills_a_daemon_that_forked_twice_and_left_the_session(sandbox):
    mark = unique_seconds()
    # The subshell and the inner shell end at once: the sleep is an orphan in a session of its own. The shell stays,
    # since something is left to do after its own sleep.
    command = f"(setsid sh -c 'sleep {mark} & exit' &); sleep {mark}; true"
    handle = sandbox.commands.run(command, background=True, timeout=3)
    wait_for(lambda: len(with_mark(mark)) == 3 and len(sessions_of(mark)) == 2, "shell, child and daemon run")
    with pytest.raises(TimeoutException):
        handle.wait()
    wait_for(lambda: not with_mark(mark), "the whole tree is dead")


def test_time_out_kills_a_tree_that_ignores_signals(sandbox):
    mark = unique_seconds()
    with pytest.raises(TimeoutException):
        sandbox.commands.run(f"trap '' TERM INT HUP; sleep {mark}; sleep {mark}", timeout=1)
    wait_for(lambda: not with_mark(mark), "the tree is dead")


def test_time_out_holds_though_the_client_left(sandbox):
    mark = unique_seconds()
    handle = sandbox.commands.run(f"sleep {mark}", background=True, timeout=2)
    wait_for(lambda: with_mark(mark), "the command runs")
    handle.disconnect()
    wait_for(lambda: not with_mark(mark), "the command is dead")


def test_command_ends_though_a_daemon_holds_its_output(sandbox):
    mark = unique_seconds()
    result = sandbox.commands.run(f"sleep {mark} & echo started", timeout=20)
    assert result.stdout == "started\n"
    assert len(with_mark(mark)) == 1, "a background process outlives a command that ended in time"
    sandbox.commands.run(f"kill $(grep -lazE '^{mark}$' /proc/[0-9]*/cmdline | cut -d/ -f3)", user="root")
    wait_for(lambda: not with_mark(mark), "the daemon is dead")


def test_orphans_are_reaped(sandbox, agent):
    sandbox.commands.run("for i in $(seq 50); do (true & true &) & done; wait")
    wait_for(lambda: not zombies_below(agent.pid), lambda: f"no zombies; left: {zombies_below(agent.pid)}")
