"""Terminals through the server."""

import pytest
from e2b import InvalidArgumentException, NotFoundException, PtySize

from streams import Terminal, stream_input

SIZE = PtySize(rows=24, cols=80)
NO_SUCH_PID = 4_000_000


@pytest.fixture
def terminal(sandbox):
    terminal = Terminal.create(sandbox, SIZE)
    yield terminal
    sandbox.pty.kill(terminal.pid)


def test_what_is_typed_runs_in_a_shell_of_the_user(terminal):
    terminal.type("echo $((6*7)) $(id -un) $PWD; [ -t 0 ] && echo on-$(tty)\n")
    terminal.expect("42 user /home/user")
    terminal.expect("on-/dev/pts/")


def test_size_is_given_and_changed(sandbox, terminal):
    terminal.type("stty size\n")
    terminal.expect("24 80")
    sandbox.pty.resize(terminal.pid, PtySize(rows=40, cols=132))
    terminal.type("stty size\n")
    terminal.expect("40 132")


def test_exit_code_of_the_shell_comes_back(terminal):
    terminal.type("exit 4\n")
    assert terminal.ending() == 4


def test_environment_user_and_directory_are_as_asked(sandbox, folder):
    terminal = Terminal.create(sandbox, SIZE, user="root", cwd=folder, envs={"GIVEN": "value"}, timeout=240)
    terminal.type("echo $(id -un):$PWD:$GIVEN\n")
    terminal.expect(f"root:{folder}:value")
    assert sandbox.pty.kill(terminal.pid) is True
    with pytest.raises(InvalidArgumentException):
        Terminal.create(sandbox, SIZE, cwd="/no/such/directory")


def test_a_root_without_bash_has_sh(fresh_sandbox):
    # The SDK names /bin/bash in both.
    fresh_sandbox.commands.run("rm /bin/bash", user="root")
    assert fresh_sandbox.commands.run("echo $((6*7))").stdout == "42\n"
    terminal = Terminal.create(fresh_sandbox, SIZE)
    terminal.type("echo tty-$((40+2)); exit 4\n")
    terminal.expect("tty-42")
    assert terminal.ending() == 4


def test_terminal_is_left_and_found_again(sandbox):
    options = {"on_data": lambda data: None} if sandbox.is_async else {}
    handle = sandbox.pty.create(SIZE, **options)
    sandbox.pty.send_stdin(handle.pid, b"KEPT=$((100+1))\n")
    handle.disconnect()
    repeated = Terminal.connect(sandbox, handle.pid)
    repeated.type("echo kept-$KEPT\n")
    repeated.expect("kept-101")
    assert sandbox.pty.kill(handle.pid) is True


def test_unknown_terminal_is_not_found(sandbox):
    assert sandbox.pty.kill(NO_SUCH_PID) is False
    for call in (
        lambda: Terminal.connect(sandbox, NO_SUCH_PID),
        lambda: sandbox.pty.resize(NO_SUCH_PID, SIZE),
        lambda: sandbox.pty.send_stdin(NO_SUCH_PID, b"x"),
    ):
        with pytest.raises(NotFoundException):
            call()


@pytest.mark.needs("stream_input")
def test_input_is_streamed_to_a_terminal(sandbox, terminal):
    stream_input(sandbox, sandbox.pty, terminal.pid, ["echo str", b"eamed-$((2+3))\n"])
    terminal.expect("streamed-5")
