"""Commands: what the originals got wrong, and what the contract says about the rest."""

import pytest

from api import describe_reply
from waiting import wait_for

pytestmark = pytest.mark.quick


def test_a_background_command_answers_at_once_with_its_process_id(api, shared):
    started = api.run(shared, "sleep 3000", background=True)
    assert started["success"] is True and started["process_id"] > 0
    assert api.run(shared, f"kill -0 {started['process_id']} && echo alive")["output"] == "alive\n"


def test_a_background_command_goes_on_after_its_answer(api, shared):
    api.run(shared, "for i in 1 2 3; do echo $i >> /tmp/counted; done; touch /tmp/counted.done", background=True)
    wait_for(lambda: api.run(shared, "test -e /tmp/counted.done")["exit_code"] == 0, "the command ends")
    assert api.read(shared, "/tmp/counted") == "1\n2\n3\n"


def test_standard_error_is_kept_and_comes_after_standard_output(api, shared):
    ran = api.run(shared, "echo wrong >&2; echo right")
    assert (ran["stdout"], ran["stderr"], ran["output"]) == ("right\n", "wrong\n", "right\nwrong\n")


def test_a_non_zero_exit_is_an_answer_not_an_error(api, shared):
    ran = api.run(shared, "echo partly; exit 3")
    assert (ran["exit_code"], ran["output"]) == (3, "partly\n")


def test_a_command_killed_by_a_signal_says_so_in_its_exit_code(api, shared):
    assert api.run(shared, "kill -9 $$")["exit_code"] == 137


def test_a_text_runs_in_a_login_shell_and_a_list_as_it_is(api, shared):
    assert api.run(shared, "echo $((6*7)) | tr 2 3")["stdout"] == "43\n"
    assert api.run(shared, ["echo", "$((6*7))", "a b"])["stdout"] == "$((6*7)) a b\n"


def test_directory_environment_and_user_are_as_asked(api, shared):
    ran = api.run(shared, "echo $PWD $GIVEN $(id -un)", cwd="/tmp", env={"GIVEN": "value"}, user="root")
    assert (ran["stdout"], ran["cwd"]) == ("/tmp value root\n", "/tmp")
    ran = api.run(shared, "echo $PWD $(id -un)")
    assert (ran["stdout"], ran["cwd"]) == ("/home/user user\n", "/home/user")
    assert api.run(shared, "sleep 3000", background=True, cwd="/tmp")["cwd"] == "/tmp"


def test_one_directory_for_commands_relative_paths_and_tools(api):
    sandbox = api.create(env={"SANDYARD_WORKDIR": "/srv/work"})
    ran = api.run(sandbox, "pwd; id -un; echo hi > by-command")
    assert (ran["stdout"], ran["cwd"]) == ("/srv/work\nuser\n", "/srv/work")
    api.write(sandbox, "by-path", "text")
    assert api.read(sandbox, "by-command") == "hi\n"
    assert api.run(sandbox, "cat /srv/work/by-path")["stdout"] == "text"
    tool = {"tool": "run_command", "args": {"command": "ls"}}
    reply = api.post(f"/p/{sandbox}/6060/mcp", tool)
    assert "by-command" in reply.text and "by-path" in reply.text, describe_reply(reply)
    assert api.run(sandbox, "echo ~")["stdout"] == "/home/user\n"


def test_a_root_without_bash_has_sh(api):
    sandbox = api.create()
    # In this sandbox alone: the host's /usr is below a layer of its own.
    api.run(sandbox, "rm /bin/bash", user="root")
    assert api.run(sandbox, "echo $0 $((6*7))")["stdout"] == "/bin/sh 42\n"


def test_apt_get_names_a_template_with_packages_of_its_own(api, shared):
    for command in ("sudo apt-get install -y hello", "apt install hello"):
        ran = api.run(shared, command)
        assert ran["exit_code"] == 100 and "--template debian" in ran["stderr"], ran


def test_a_time_out_is_408_and_ends_the_whole_tree(api, sandbox):
    reply = api.post(
        "/sandboxes/run-command", {"sandbox_id": sandbox, "command": "sleep 4242 & sleep 4242; true", "timeout": 1}
    )
    assert reply.status_code == 408, describe_reply(reply)
    assert reply.json()["code"] and reply.json()["detail"]
    wait_for(
        lambda: api.run(sandbox, "pgrep -f '^sleep 4242' || echo none")["stdout"] == "none\n", "its processes are gone"
    )


def test_output_that_is_no_text_is_still_answered(api, shared):
    ran = api.run(shared, r"printf 'a\377b'")
    assert (ran["exit_code"], ran["stdout"]) == (0, "a�b")


def test_a_program_that_does_not_exist_is_no_server_error(api, shared):
    reply = api.post("/sandboxes/run-command", {"sandbox_id": shared, "command": ["/no/such/program"]})
    assert reply.status_code < 500, describe_reply(reply)
    assert api.run(shared, "no-such-program")["exit_code"] == 127


def test_very_long_output_is_bounded_and_says_so(api, shared):
    ran = api.run(shared, "head -c 20000000 /dev/zero | tr '\\0' x")
    assert ran["exit_code"] == 0 and ran["truncated"] is True
    assert 1_000_000 < len(ran["stdout"]) < 20_000_000


@pytest.mark.parametrize(
    "body, field",
    [
        ({"command": "true"}, "sandbox_id"),
        ({"sandbox_id": "SANDBOX"}, "command"),
        ({"sandbox_id": "SANDBOX", "command": []}, "command"),
        ({"sandbox_id": "SANDBOX", "command": "true", "timeout": 0}, "timeout"),
        ({"sandbox_id": "SANDBOX", "command": "true", "timeout": "soon"}, "timeout"),
    ],
)
def test_an_invalid_request_is_422_and_names_the_field(api, shared, body, field):
    body = {key: shared if value == "SANDBOX" else value for key, value in body.items()}
    reply = api.post("/sandboxes/run-command", body)
    assert reply.status_code == 422, describe_reply(reply)
    message_field = reply.json().get("field") or ""
    assert field in message_field or field in reply.json()["detail"]


def test_environment_of_the_sandbox_reaches_every_command(api, make):
    sandbox = make(env={"SECRET": "of the sandbox"})
    assert api.run(sandbox, "echo $SECRET")["stdout"] == "of the sandbox\n"
    assert "of the sandbox" not in str(api.info(sandbox))


def test_commands_of_one_sandbox_run_side_by_side(api, sandbox):
    api.run(sandbox, "until test -e /tmp/go; do sleep 0.05; done; touch /tmp/went", background=True)
    api.run(sandbox, "touch /tmp/go")
    wait_for(lambda: api.run(sandbox, "test -e /tmp/went")["exit_code"] == 0, "the first one goes on")


def test_a_relative_path_of_the_tools_is_found_below_the_home(api, shared):
    """Commands begin in the home, MCP tools and VS Code in /workspace."""
    api.run(shared, "echo kept > /workspace/note.txt")
    assert api.run(shared, "cat workspace/note.txt")["output"] == "kept\n"


def test_programs_that_pip_installs_for_the_user_are_found(api, shared):
    api.run(shared, "mkdir -p ~/.local/bin && printf '#!/bin/sh\\necho mine\\n' > ~/.local/bin/mine && chmod +x ~/.local/bin/mine")
    assert api.run(shared, ["mine"])["output"] == "mine\n"
    assert api.run(shared, "mine")["output"] == "mine\n"
