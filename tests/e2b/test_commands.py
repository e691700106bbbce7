"""Running commands through the server: what they print, what they are given, how they are steered and how they end."""

import threading
import uuid

import pytest
from e2b import AuthenticationException, CommandExitException, InvalidArgumentException, NotFoundException, TimeoutException

from streams import Follower, callbacks, stream_input
from waiting import wait_for

NO_SUCH_PID = 4_000_000


def test_output_and_exit_code_come_back(sandbox):
    result = sandbox.commands.run("echo out; echo err >&2")
    assert (result.stdout, result.stderr, result.exit_code, result.error) == ("out\n", "err\n", 0, None)


def test_non_zero_exit_raises_with_all_that_was_printed(sandbox):
    with pytest.raises(CommandExitException) as raised:
        sandbox.commands.run("echo out; echo err >&2; exit 7")
    error = raised.value
    assert (error.stdout, error.stderr, error.exit_code) == ("out\n", "err\n", 7)


def test_a_session_of_its_own_loses_nothing(sandbox):
    """Frameworks start every command with setsid, which forks when it is called by a leader of a group."""
    for _ in range(5):
        assert sandbox.commands.run("setsid sh -c 'echo hi'").stdout == "hi\n"
        with pytest.raises(CommandExitException) as failure:
            sandbox.commands.run("setsid sh -c 'exit 3'")
        assert failure.value.exit_code == 3


def test_a_command_may_signal_its_own_group(sandbox):
    assert sandbox.commands.run("trap : TERM; kill 0; echo survived").stdout == "survived\n"
    with pytest.raises(CommandExitException):
        sandbox.commands.run("kill -KILL 0", user="root")
    assert sandbox.commands.run("echo well").stdout == "well\n"


def test_output_reaches_callbacks(sandbox):
    out, err = [], []
    result = sandbox.commands.run("echo out; echo err >&2", on_stdout=out.append, on_stderr=err.append)
    assert ("".join(out), "".join(err)) == (result.stdout, result.stderr) == ("out\n", "err\n")


def test_output_is_not_buffered(sandbox, folder):
    seen = threading.Event()
    at_start, at_wait = callbacks(sandbox, on_stdout=lambda text: seen.set())
    # It can only end if its first byte, far less than any buffer, arrived while it ran.
    command = f"printf x; while [ ! -e {folder}/go ]; do sleep 0.05; done; echo end"
    handle = sandbox.commands.run(command, background=True, **at_start)
    results = []
    waiter = threading.Thread(target=lambda: results.append(handle.wait(**at_wait)))
    waiter.start()
    assert seen.wait(90)
    sandbox.files.write(f"{folder}/go", "")
    waiter.join(90)
    assert [result.stdout for result in results] == ["xend\n"]


def test_background_command_is_waited_for(sandbox):
    handle = sandbox.commands.run("echo done", background=True)
    assert handle.pid > 0
    assert handle.wait().stdout == "done\n"
    if sandbox.is_async:
        assert (handle.stdout, handle.stderr, handle.exit_code, handle.error) == ("done\n", "", 0, None)


def test_handle_is_walked_through(sandbox):
    """Only the synchronous half lets its handle be iterated; the other has callbacks for it."""
    handle = sandbox.commands.run("echo one; echo two >&2", background=True)
    if sandbox.is_async:
        handle.wait()
        return
    events = list(handle)
    assert "".join(out or "" for out, _, _ in events) == "one\n"
    assert "".join(err or "" for _, err, _ in events) == "two\n"


def test_environment_directory_and_user_are_as_asked(sandbox, folder):
    run = sandbox.commands.run
    assert run('echo "$A|$B|${C-none}"', envs={"A": "1 2", "B": ""}).stdout == "1 2||none\n"
    assert run("pwd", cwd=folder).stdout == f"{folder}\n"
    assert run('echo "$(id -un) $HOME $PWD"', user="root").stdout == "root /root /root\n"
    assert run('echo "$(id -un) $HOME $PWD"').stdout == "user /home/user /home/user\n"


def test_what_cannot_be_is_said(sandbox):
    with pytest.raises(AuthenticationException, match="nobody-of-that-name"):
        sandbox.commands.run("true", user="nobody-of-that-name")
    with pytest.raises(InvalidArgumentException, match="/no/such/directory"):
        sandbox.commands.run("true", cwd="/no/such/directory")


def test_command_that_takes_too_long_is_ended(sandbox, mark):
    with pytest.raises(TimeoutException):
        sandbox.commands.run(f"sleep 1000; echo {mark}", timeout=1)
    wait_for(lambda: mark not in str(sandbox.commands.list()), "the command is ended")
    assert sandbox.commands.run("echo free", timeout=0, request_timeout=120).stdout == "free\n"


def test_much_output_arrives_whole_and_in_order(sandbox):
    assert sandbox.commands.run("seq 1 200000").stdout == "".join(f"{number}\n" for number in range(1, 200_001))


def test_unicode_survives_in_both_directions(sandbox):
    text = "žluťoučký 日本語 🐎"
    assert sandbox.commands.run(f"echo '{text}'; printf '%s' \"$GIVEN\"", envs={"GIVEN": text}).stdout == f"{text}\n{text}"


@pytest.mark.needs("retain_output")
def test_output_need_not_be_kept(sandbox):
    out = []
    result = sandbox.commands.run("echo seen", on_stdout=out.append, retain_output=False)
    assert ("".join(out), result.stdout) == ("seen\n", None)


# --- steering


def test_stdin_is_sent_and_closed(sandbox):
    handle = sandbox.commands.run("cat", background=True, stdin=True)
    sandbox.commands.send_stdin(handle.pid, "one\n")
    handle.send_stdin(b"two\n")
    sandbox.commands.close_stdin(handle.pid)
    assert handle.wait().stdout == "one\ntwo\n"
    counted = sandbox.commands.run("wc -c", background=True, stdin=True)
    counted.send_stdin("x" * 200_000)
    counted.close_stdin()
    assert counted.wait().stdout.strip() == "200000"


def test_command_without_stdin_sees_its_end_at_once(sandbox):
    assert sandbox.commands.run("cat; echo end").stdout == "end\n"


@pytest.mark.needs("stream_input")
def test_input_is_streamed(sandbox):
    handle = sandbox.commands.run("cat", background=True, stdin=True)
    stream_input(sandbox, sandbox.commands, handle.pid, ["one\n", b"two\n"])
    stream_input(sandbox, sandbox.commands, handle.pid, [f"{number}\n" for number in range(500)])
    sandbox.commands.close_stdin(handle.pid)
    assert handle.wait().stdout == "one\ntwo\n" + "".join(f"{number}\n" for number in range(500))


def test_list_shows_running_commands_and_kill_ends_them(sandbox, folder):
    tag = uuid.uuid4().hex
    handle = sandbox.commands.run(f"sleep 1000; echo {tag}", background=True, envs={"TAG": tag}, cwd=folder)
    (displayed,) = [process for process in sandbox.commands.list() if process.pid == handle.pid]
    assert (displayed.cmd, displayed.args) == ("/bin/bash", ["-l", "-c", f"sleep 1000; echo {tag}"])
    assert (displayed.envs.get("TAG"), displayed.cwd) == (tag, folder)
    assert sandbox.commands.kill(handle.pid) is True
    with pytest.raises(CommandExitException):
        handle.wait()
    assert sandbox.commands.kill(handle.pid) is False
    other = sandbox.commands.run("sleep 1000", background=True)
    assert other.kill() is True


def test_unknown_pids_are_not_found(sandbox):
    assert sandbox.commands.kill(NO_SUCH_PID) is False
    for call in (
        lambda: sandbox.commands.send_stdin(NO_SUCH_PID, "x"),
        lambda: sandbox.commands.close_stdin(NO_SUCH_PID),
        lambda: sandbox.commands.connect(NO_SUCH_PID),
    ):
        with pytest.raises(NotFoundException):
            call()


def test_command_is_left_and_found_again(sandbox, folder):
    command = f"echo before; while [ ! -e {folder}/go ]; do sleep 0.05; done; echo after; exit 3"
    handle = sandbox.commands.run(command, background=True)
    handle.disconnect()
    repeated = Follower.connect(sandbox, handle.pid)
    assert repeated.handle.pid == handle.pid
    sandbox.files.write(f"{folder}/go", "")
    ended = repeated.ended()
    assert (ended.exit_code, ended.stdout[-6:], repeated.text()[-6:]) == (3, "after\n", "after\n")
    with pytest.raises(CommandExitException) as raised:
        sandbox.commands.connect(handle.pid).wait()
    assert raised.value.exit_code == 3, "its end is told for a while"


def test_twenty_commands_at_once_do_not_mix(sandbox):
    handles = [sandbox.commands.run(f"sleep 0.2; echo {n}", background=True) for n in range(20)]
    assert [handle.wait().stdout for handle in handles] == [f"{n}\n" for n in range(20)]
