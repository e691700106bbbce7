"""Terminals."""

import pytest
from e2b import InvalidArgumentException, NotFoundException, PtySize
from e2b.sandbox_sync.commands.pty import Pty

from both_kinds import Blocking, Terminal, stream_input
from processes import unique_seconds, with_mark
from waiting import wait_for

SIZE = PtySize(rows=24, cols=80)
NO_SUCH_PID = 4_000_000


@pytest.fixture
def terminal(sandbox):
    terminal = Terminal.create(sandbox, SIZE, envs={"PS1": "ready> "})
    yield terminal
    sandbox.pty.kill(terminal.pid)


def test_what_is_typed_runs_in_a_shell_of_the_user(terminal):
    terminal.type("echo $((6*7)) $(id -un) $PWD\n")
    terminal.expect("42 user /home/user")


def test_shell_knows_it_has_a_terminal(terminal):
    terminal.type("[ -t 0 ] && [ -t 1 ] && echo $TERM-on-$(tty)\n")
    terminal.expect("xterm-256color-on-/dev/pts/")


def test_size_is_given_and_changed(sandbox, terminal):
    terminal.type("stty size\n")
    terminal.expect("24 80")
    sandbox.pty.resize(terminal.pid, PtySize(rows=40, cols=132))
    terminal.type("stty size\n")
    terminal.expect("40 132")


def test_control_c_interrupts(terminal):
    mark = unique_seconds()
    terminal.type(f"sleep {mark}\n")
    # Between its fork and its exec a child of the shell would swallow the signal.
    wait_for(lambda: with_mark(mark), "the command runs")
    terminal.type("\x03")
    # The sum tells the shell's answer from the echo of what was typed.
    terminal.type("echo still-$((1+1))\n")
    terminal.expect("still-2")


def test_exit_code_of_the_shell_comes_back(terminal):
    terminal.type("exit 4\n")
    assert terminal.exit_code() == 4


def test_killed_terminal_ends(sandbox):
    terminal = Terminal.create(sandbox, SIZE)
    assert sandbox.pty.kill(terminal.pid) is True
    assert terminal.exit_code() != 0
    assert sandbox.pty.kill(NO_SUCH_PID) is False


def test_environment_user_and_directory_are_as_asked(sandbox, folder):
    terminal = Terminal.create(sandbox, SIZE, user="root", cwd=folder, envs={"GIVEN": "value"})
    terminal.type("echo $(id -un):$PWD:$GIVEN\n")
    terminal.expect(f"root:{folder}:value")
    sandbox.pty.kill(terminal.pid)


def test_missing_directory_is_an_invalid_argument(sandbox):
    with pytest.raises(InvalidArgumentException, match="/no/such/directory"):
        Terminal.create(sandbox, SIZE, cwd="/no/such/directory")


def test_terminal_is_left_and_found_again(sandbox):
    options = {"on_data": lambda data: None} if isinstance(sandbox, Blocking) else {}
    handle = sandbox.pty.create(SIZE, **options)
    sandbox.pty.send_stdin(handle.pid, b"KEPT=$((100+1))\n")
    handle.disconnect()
    repeated = Terminal.connect(sandbox, handle.pid)
    repeated.type("echo kept-$KEPT\n")
    repeated.expect("kept-101")
    sandbox.pty.kill(handle.pid)


def test_terminal_is_listed(sandbox, terminal):
    displayed = [process for process in sandbox.commands.list() if process.pid == terminal.pid]
    assert [(process.cmd, process.args) for process in displayed] == [("/bin/bash", ["-i", "-l"])]


def test_unknown_terminal_is_not_found(sandbox):
    with pytest.raises(NotFoundException):
        Terminal.connect(sandbox, NO_SUCH_PID)
    with pytest.raises(NotFoundException):
        sandbox.pty.resize(NO_SUCH_PID, SIZE)
    with pytest.raises(NotFoundException):
        sandbox.pty.send_stdin(NO_SUCH_PID, b"x")


if hasattr(Pty, "stream_input"):

    def test_input_is_streamed_to_a_terminal(sandbox, terminal):
        stream_input(sandbox, sandbox.pty, terminal.pid, ["echo str", b"eamed-$((2+3))\n"])
        terminal.expect("streamed-5")
