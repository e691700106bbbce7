"""Commands and sessions through the official SDK; all of them really run."""

import asyncio
import uuid

import pytest
from daytona import (
    CodeRunParams,
    DaytonaConflictError,
    DaytonaGoneError,
    DaytonaNotFoundError,
    DaytonaTimeoutError,
    SessionExecuteRequest,
)
from waiting import wait_for


@pytest.fixture
def session(sandbox):
    name = f"session-{uuid.uuid4().hex[:8]}"
    sandbox.process.create_session(name)
    yield name
    try:
        sandbox.process.delete_session(name)
    except DaytonaNotFoundError:
        pass


def execute(sandbox, session, command, **options):
    return sandbox.process.execute_session_command(session, SessionExecuteRequest(command=command, **options))


def test_exec(sandbox):
    done = sandbox.process.exec("id -un; pwd; echo to stderr >&2; exit 3")
    assert (done.exit_code, done.result) == (3, "daytona\n/home/daytona\nto stderr\n")
    done = sandbox.process.exec("echo $WORD; pwd", cwd="/tmp", env={"WORD": "märchen"})
    assert (done.exit_code, done.result) == (0, "märchen\n/tmp\n")


def test_exec_is_not_root(sandbox):
    assert sandbox.process.exec("touch /etc/mine").exit_code != 0


def test_exec_that_takes_too_long(sandbox):
    with pytest.raises(DaytonaTimeoutError):
        sandbox.process.exec("sleep 100", timeout=1)


def test_code_run(sandbox):
    done = sandbox.process.code_run("import sys; print(6 * 7, sys.argv[1])", CodeRunParams(argv=["x"]))
    assert (done.exit_code, done.result) == (0, "42 x\n")
    assert sandbox.process.code_run("raise SystemExit(2)").exit_code == 2


def test_a_session_remembers(sandbox, session):
    first = execute(sandbox, session, "cd /tmp; export WORD=kept; echo out; echo err >&2")
    assert (first.exit_code, first.stdout, first.stderr) == (0, "out\n", "err\n")
    second = execute(sandbox, session, "pwd; echo $WORD; (exit 4)")
    assert (second.exit_code, second.stdout) == (4, "/tmp\nkept\n")
    outcome = sandbox.process.get_session(session)
    assert [(command.id, command.exit_code) for command in outcome.commands] == [(first.cmd_id, 0), (second.cmd_id, 4)]
    assert session in [entries.session_id for entries in sandbox.process.list_sessions()]


def test_invalid_input_does_not_end_a_session(sandbox, session):
    assert execute(sandbox, session, "if then (").exit_code != 0
    assert execute(sandbox, session, "echo still here").stdout == "still here\n"


def test_a_session_that_exits_is_gone(sandbox, session):
    assert execute(sandbox, session, "exit 5").exit_code == 5
    with pytest.raises(DaytonaGoneError):
        execute(sandbox, session, "true")


def test_an_async_command_with_input(sandbox, session):
    started = execute(sandbox, session, "echo ready; read word; echo got $word; exit 0", run_async=True)
    assert started.exit_code is None

    def logs():
        return sandbox.process.get_session_command_logs(session, started.cmd_id)

    wait_for(lambda: "ready" in logs().stdout, "it is ready")
    assert sandbox.process.get_session_command(session, started.cmd_id).exit_code is None
    sandbox.process.send_session_command_input(session, started.cmd_id, "it\n")
    wait_for(lambda: sandbox.process.get_session_command(session, started.cmd_id).exit_code == 0, "it ends")
    assert logs().stdout == "ready\ngot it\n"
    with pytest.raises(DaytonaGoneError):
        sandbox.process.send_session_command_input(session, started.cmd_id, "too late\n")


async def test_logs_are_followed(sandbox, session):
    started = execute(sandbox, session, "echo one; read go; echo two; echo bad >&2", run_async=True)
    out, bad, first = [], [], asyncio.Event()

    def on_stdout(text):
        out.append(text)
        first.set()

    following = asyncio.create_task(
        sandbox.process.get_session_command_logs_async(session, started.cmd_id, on_stdout, bad.append)
    )
    await asyncio.wait_for(first.wait(), 120)
    # What was said before the end is heard before the end.
    assert out == ["one\n"]
    sandbox.process.send_session_command_input(session, started.cmd_id, "go\n")
    await asyncio.wait_for(following, 120)
    assert "".join(out) == "one\ntwo\n"
    assert "".join(bad) == "bad\n"


def test_deleting_a_session_ends_its_processes(sandbox, session):
    started = execute(sandbox, session, "sleep 7654", run_async=True)
    wait_for(lambda: sandbox.process.exec("pgrep -f 'sleep 765[4]'").exit_code == 0, "it runs")
    sandbox.process.delete_session(session)
    wait_for(lambda: sandbox.process.exec("pgrep -f 'sleep 765[4]'").exit_code == 1, "it is gone")
    with pytest.raises(DaytonaNotFoundError):
        sandbox.process.get_session_command(session, started.cmd_id)


def test_sessions_have_one_name_each(sandbox, session):
    with pytest.raises(DaytonaConflictError):
        sandbox.process.create_session(session)
    with pytest.raises(DaytonaNotFoundError):
        sandbox.process.get_session("never-made")
    with pytest.raises(DaytonaNotFoundError):
        execute(sandbox, "never-made", "true")


def test_what_the_sandbox_says_of_itself(sandbox):
    assert sandbox.get_user_home_dir() == "/home/daytona"
    assert sandbox.get_work_dir() == "/home/daytona"
    used = sandbox.get_metrics_latest()
    assert used.mem_total == 1 << 30
    assert 0 < used.mem_used < used.mem_total


def test_environment_can_be_changed(make):
    sandbox = make(env_vars={"FIRST": "1"})
    sandbox.update_env({"SECOND": "2"}, unset=["FIRST"])
    assert sandbox.process.exec("echo [$FIRST][$SECOND]").result == "[][2]\n"


def test_recent_usage(sandbox):
    """There is a point every few seconds."""
    wait_for(lambda: sandbox.get_metrics(), "there is a point")
    assert sandbox.get_metrics()[-1].mem_total == 1 << 30
