"""Running commands: what they print, what they are given, how they end."""

import threading

import pytest
from e2b import AuthenticationException, CommandExitException, InvalidArgumentException

from both_kinds import callbacks


def test_output_and_exit_code_of_a_command_come_back(sandbox):
    result = sandbox.commands.run("echo out; echo err >&2")
    assert (result.stdout, result.stderr, result.exit_code, result.error) == ("out\n", "err\n", 0, None)


def test_non_zero_exit_raises_with_all_that_was_printed(sandbox):
    with pytest.raises(CommandExitException) as raised:
        sandbox.commands.run("echo out; echo err >&2; exit 7")
    error = raised.value
    assert (error.stdout, error.stderr, error.exit_code) == ("out\n", "err\n", 7)


def test_unknown_command_is_the_shells_127(sandbox):
    with pytest.raises(CommandExitException) as raised:
        sandbox.commands.run("no-such-command-here")
    assert raised.value.exit_code == 127
    assert "not found" in raised.value.stderr


def test_output_reaches_callbacks_while_the_command_runs(sandbox):
    out, err = [], []
    result = sandbox.commands.run(
        "for i in 1 2 3; do echo out$i; echo err$i >&2; done", on_stdout=out.append, on_stderr=err.append
    )
    assert "".join(out) == result.stdout == "out1\nout2\nout3\n"
    assert "".join(err) == result.stderr == "err1\nerr2\nerr3\n"


def test_callback_sees_output_before_the_command_ends(sandbox, folder):
    seen = threading.Event()

    def unlock(text):
        # The command waits for this file, so it can only end if its first line arrived while it ran.
        seen.set()

    at_start, at_wait = callbacks(sandbox, on_stdout=unlock)
    command = f"echo first; while [ ! -e {folder}/go ]; do sleep 0.05; done; echo second"
    handle = sandbox.commands.run(command, background=True, **at_start)
    results = []
    waiter = threading.Thread(target=lambda: results.append(handle.wait(**at_wait)))
    waiter.start()
    assert seen.wait(90)
    sandbox.files.write(f"{folder}/go", "")
    waiter.join(90)
    assert [result.stdout for result in results] == ["first\nsecond\n"]


def test_background_command_is_waited_for(sandbox):
    handle = sandbox.commands.run("echo done", background=True)
    assert handle.pid > 0
    result = handle.wait()
    assert (result.stdout, result.exit_code) == ("done\n", 0)


def test_no_time_out_is_allowed(sandbox):
    assert sandbox.commands.run("echo free", timeout=0).stdout == "free\n"


def test_default_user_home_and_login_environment(sandbox):
    result = sandbox.commands.run('printf "%s|" "$(id -un)" "$(id -gn)" "$PWD" "$HOME" "$USER" "$LOGNAME"; command -v ls')
    assert result.stdout.split("|")[:-1] == ["user", "user", "/home/user", "/home/user", "user", "user"]
    assert result.stdout.endswith("/ls\n")


@pytest.mark.parametrize(("user", "uid", "home"), [("root", "0", "/root"), ("user", "1000", "/home/user")])
def test_command_runs_as_the_named_user(sandbox, user, uid, home):
    result = sandbox.commands.run('echo "$(id -u) $HOME $PWD $USER"', user=user)
    assert result.stdout == f"{uid} {home} {home} {user}\n"


def test_unknown_user_is_an_authentication_error(sandbox):
    with pytest.raises(AuthenticationException, match="nobody-of-that-name"):
        sandbox.commands.run("true", user="nobody-of-that-name")


def test_command_gets_its_environment(sandbox):
    result = sandbox.commands.run('echo "$PLAIN|$SPACED|$EMPTY|${ABSENT-none}"', envs={"PLAIN": "1", "SPACED": "a b", "EMPTY": ""})
    assert result.stdout == "1|a b||none\n"


def test_environment_of_one_command_does_not_reach_the_next(sandbox):
    sandbox.commands.run("true", envs={"ONCE": "1"})
    assert sandbox.commands.run('echo "${ONCE-gone}"').stdout == "gone\n"


def test_command_runs_in_its_working_directory(sandbox, folder):
    assert sandbox.commands.run("pwd", cwd=folder).stdout == f"{folder}\n"
    assert sandbox.commands.run("pwd", cwd=folder.removeprefix("/home/user/")).stdout == f"{folder}\n"


def test_missing_working_directory_is_an_invalid_argument(sandbox):
    with pytest.raises(InvalidArgumentException, match="/no/such/directory"):
        sandbox.commands.run("true", cwd="/no/such/directory")


def test_ten_megabytes_of_output_arrive_whole(sandbox):
    size = 10 * 1024 * 1024
    result = sandbox.commands.run(f"head -c {size} /dev/zero | tr '\\0' x", timeout=250)
    assert len(result.stdout) == size
    assert result.stdout.count("x") == size


def test_many_lines_arrive_in_order(sandbox):
    result = sandbox.commands.run("seq 1 100000", timeout=250)
    assert result.stdout == "".join(f"{number}\n" for number in range(1, 100001))


def test_unicode_survives_in_both_directions(sandbox):
    text = "žluťoučký kůň 日本語 🐎 \u202eabc"
    assert sandbox.commands.run(f"echo '{text}'; printf '%s' \"$GIVEN\"", envs={"GIVEN": text}).stdout == f"{text}\n{text}"


def test_character_split_over_two_writes_is_one_character(sandbox):
    assert sandbox.commands.run(r"printf '\360\237'; sleep 0.2; printf '\220\216'").stdout == "🐎"


def test_command_without_stdin_sees_its_end_at_once(sandbox):
    assert sandbox.commands.run("cat; echo end").stdout == "end\n"


def test_a_hundred_commands_after_each_other(sandbox):
    assert [sandbox.commands.run(f"echo {n}").stdout for n in range(100)] == [f"{n}\n" for n in range(100)]


def test_twenty_commands_at_once_do_not_mix(sandbox):
    handles = [sandbox.commands.run(f"sleep 0.3; echo {n}", background=True) for n in range(20)]
    assert [handle.wait().stdout for handle in handles] == [f"{n}\n" for n in range(20)]


def test_command_inherits_no_descriptor_of_the_agent(sandbox):
    # The fourth is the shell's own, open on the directory it lists.
    assert sandbox.commands.run("echo /proc/self/fd/*").stdout.split() == [f"/proc/self/fd/{n}" for n in range(4)]
