"""Steering a running command: input, signals, the list, leaving it and coming back."""

import uuid

import pytest
from e2b import CommandExitException, NotFoundException
from e2b.sandbox_sync.commands.command import Commands

from both_kinds import stream_input
from processes import unique_seconds, with_mark
from waiting import wait_for

NO_SUCH_PID = 4_000_000


def test_stdin_is_sent_and_closed(sandbox):
    handle = sandbox.commands.run("cat", background=True, stdin=True)
    sandbox.commands.send_stdin(handle.pid, "one\n")
    sandbox.commands.send_stdin(handle.pid, b"two\n")
    sandbox.commands.close_stdin(handle.pid)
    assert handle.wait().stdout == "one\ntwo\n"


def test_handle_sends_and_closes_stdin(sandbox):
    handle = sandbox.commands.run("wc -c", background=True, stdin=True)
    handle.send_stdin("x" * 100_000)
    handle.close_stdin()
    assert handle.wait().stdout.strip() == "100000"


def test_stdin_stays_open_until_closed(sandbox):
    handle = sandbox.commands.run("read line; echo got $line", background=True, stdin=True)
    assert handle.pid in [process.pid for process in sandbox.commands.list()]
    handle.send_stdin("this\n")
    assert handle.wait().stdout == "got this\n"


if hasattr(Commands, "stream_input"):

    def test_input_is_streamed(sandbox):
        handle = sandbox.commands.run("cat", background=True, stdin=True)
        stream_input(sandbox, sandbox.commands, handle.pid, ["one\n", b"two\n"])
        stream_input(sandbox, sandbox.commands, handle.pid, [f"{number}\n" for number in range(1000)])
        sandbox.commands.close_stdin(handle.pid)
        assert handle.wait().stdout == "one\ntwo\n" + "".join(f"{number}\n" for number in range(1000))

    def test_streaming_input_to_no_process_is_not_found(sandbox):
        with pytest.raises(NotFoundException):
            stream_input(sandbox, sandbox.commands, NO_SUCH_PID, ["x"])


def test_input_to_no_process_is_not_found(sandbox):
    with pytest.raises(NotFoundException):
        sandbox.commands.send_stdin(NO_SUCH_PID, "x")
    with pytest.raises(NotFoundException):
        sandbox.commands.close_stdin(NO_SUCH_PID)


def test_killed_command_ends_with_an_error(sandbox):
    mark = unique_seconds()
    handle = sandbox.commands.run(f"exec sleep {mark}", background=True)
    wait_for(lambda: with_mark(mark), "the command runs")
    assert handle.kill() is True
    with pytest.raises(CommandExitException) as raised:
        handle.wait()
    assert raised.value.exit_code != 0
    wait_for(lambda: not with_mark(mark), "the command is gone")


def test_kill_by_pid_says_whether_there_was_one(sandbox):
    handle = sandbox.commands.run("sleep 1000", background=True)
    assert sandbox.commands.kill(handle.pid) is True
    with pytest.raises(CommandExitException):
        handle.wait()
    assert sandbox.commands.kill(NO_SUCH_PID) is False


def test_killing_an_ended_command_says_there_was_none(sandbox):
    handle = sandbox.commands.run("true", background=True)
    handle.wait()
    assert sandbox.commands.kill(handle.pid) is False


def test_list_shows_running_commands_and_only_those(sandbox, folder):
    tag = uuid.uuid4().hex
    handle = sandbox.commands.run(f"sleep 1000; echo {tag}", background=True, envs={"TAG": tag}, cwd=folder)
    displayed = [process for process in sandbox.commands.list() if process.pid == handle.pid]
    assert len(displayed) == 1
    assert (displayed[0].cmd, displayed[0].args) == ("/bin/bash", ["-l", "-c", f"sleep 1000; echo {tag}"])
    assert (displayed[0].envs.get("TAG"), displayed[0].cwd) == (tag, folder)
    handle.kill()
    wait_for(lambda: all(process.pid != handle.pid for process in sandbox.commands.list()), "the list forgets it")


def test_disconnecting_leaves_the_command_running(sandbox, folder):
    handle = sandbox.commands.run(f"sleep 0.5; echo alive > {folder}/proof", background=True)
    handle.disconnect()
    wait_for(lambda: sandbox.files.exists(f"{folder}/proof"), "the command went on")


def test_reconnecting_by_pid_sees_the_rest_and_the_end(sandbox, folder):
    command = f"echo before; while [ ! -e {folder}/go ]; do sleep 0.05; done; echo after; exit 3"
    handle = sandbox.commands.run(command, background=True)
    handle.disconnect()
    repeated = sandbox.commands.connect(handle.pid)
    assert repeated.pid == handle.pid
    sandbox.files.write(f"{folder}/go", "")
    with pytest.raises(CommandExitException) as raised:
        repeated.wait()
    assert raised.value.exit_code == 3
    assert raised.value.stdout.endswith("after\n")


def test_two_clients_see_the_same_command(sandbox, folder):
    handle = sandbox.commands.run(f"while [ ! -e {folder}/go ]; do sleep 0.05; done; echo both", background=True)
    other = sandbox.commands.connect(handle.pid)
    sandbox.files.write(f"{folder}/go", "")
    assert (handle.wait().stdout, other.wait().stdout) == ("both\n", "both\n")


def test_connecting_to_an_ended_command_still_tells_its_end(sandbox):
    handle = sandbox.commands.run("echo said; exit 5", background=True)
    with pytest.raises(CommandExitException):
        handle.wait()
    with pytest.raises(CommandExitException) as raised:
        sandbox.commands.connect(handle.pid).wait()
    assert raised.value.exit_code == 5


def test_connecting_to_no_process_is_not_found(sandbox):
    with pytest.raises(NotFoundException):
        sandbox.commands.connect(NO_SUCH_PID)


def test_sandbox_says_it_is_running(sandbox):
    assert sandbox.is_running() is True
