"""Making sandboxes and finding them again: every option of `create`, `connect`, `kill` and what an object tells of itself."""

import logging
import shlex
import subprocess
from datetime import datetime, timedelta, timezone

import e2b
import pytest
from e2b import SandboxNotFoundException, SandboxState

import mode
from features import NO_RETRIES, NotRunning
from program import environment, find_program


def test_three_variables_are_the_whole_switch(half):
    sandbox = half.Sandbox.create()
    assert sandbox.commands.run("echo hello").stdout == "hello\n"
    assert sandbox.is_running() is True
    assert sandbox.kill() is True
    assert sandbox.is_running() is False


@pytest.mark.plain
def test_command_line_prints_the_switch(server, pointed):
    """`eval "$(sandyard e2b env)"` in a shell."""
    command = [str(find_program()), "--url", server.url, "e2b", "env"]
    variables = environment(SANDYARD_API_KEY=pointed["E2B_API_KEY"])
    script = f"eval \"$({shlex.join(command)})\" && env"
    done = subprocess.run(["sh", "-ec", script], env=variables, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    exported = dict(line.split("=", 1) for line in done.stdout.splitlines() if line.startswith("E2B_"))
    assert exported == pointed


def test_context_manager_kills_at_its_end(half):
    with half.Sandbox.create() as sandbox:
        assert sandbox.commands.run("echo in").stdout == "in\n"
    assert half.Sandbox.kill(sandbox.sandbox_id) is False


@pytest.mark.plain
def test_object_tells_where_it_is(sandbox, pointed):
    assert sandbox.sandbox_id.isalnum() and sandbox.sandbox_id == sandbox.sandbox_id.lower()
    assert sandbox.envd_api_url == sandbox.envd_direct_url == pointed["E2B_SANDBOX_URL"]
    assert sandbox.connection_config.api_url == pointed["E2B_API_URL"]
    assert sandbox.get_host(3000) == f"3000-{sandbox.sandbox_id}.{sandbox.sandbox_domain}"
    assert sandbox.get_mcp_url() == f"https://{sandbox.get_host(50005)}/mcp"


def test_every_option_of_create_is_taken(make, mark):
    sandbox = make(
        template="base",
        timeout=600,
        metadata={"mark": mark, "with space": "a=b&c d/ü"},
        envs={"GIVEN": "a b", "EMPTY": ""},
        secure=True,
        allow_internet_access=False,
        network={"allow_out": ["192.0.2.1"], "deny_out": lambda ctx: [ctx.all_traffic]},
        lifecycle={"on_timeout": "pause", "auto_resume": True},
        logger=logging.getLogger("e2b-test"),
        request_timeout=120,
        headers={"X-Anything": "1"},
    )
    info = sandbox.get_info()
    assert info.metadata == {"mark": mark, "with space": "a=b&c d/ü"}
    assert info.lifecycle == {"on_timeout": "pause", "auto_resume": True}
    assert info.allow_internet_access is False
    assert info.network["allow_out"] == ["192.0.2.1"]
    assert "0.0.0.0/0" in info.network["deny_out"]
    assert sandbox.commands.run('echo "$GIVEN|$EMPTY|${ABSENT-none}"').stdout == "a b||none\n"


def test_default_template_has_what_agents_expect(sandbox):
    assert sandbox.commands.run("id -un; pwd; sudo -n id -un").stdout.splitlines() == ["user", "/home/user", "root"]
    programs = "bash git python3 python curl tput realpath"
    assert sandbox.commands.run(f"for p in {programs}; do command -v $p || echo no $p; done | grep ^no || true").stdout == ""
    assert sandbox.commands.run('[ -x "$(git --exec-path)/git-daemon" ] && echo is there').stdout == "is there\n"


def test_info_tells_all_there_is(half, make):
    before = datetime.now(timezone.utc) - timedelta(seconds=5)
    sandbox, took = timed(make, timeout=100, metadata={"k": "v"})
    info = sandbox.get_info()
    assert info == half.Sandbox.get_info(sandbox.sandbox_id)
    assert (info.sandbox_id, info.metadata, info.state) == (sandbox.sandbox_id, {"k": "v"}, SandboxState.RUNNING)
    assert before < info.started_at < datetime.now(timezone.utc) + timedelta(seconds=5)
    assert timedelta(seconds=90) < info.end_at - info.started_at < timedelta(seconds=110) + took
    assert info.cpu_count >= 1 and info.memory_mb >= 128
    assert info.template_id and info.envd_version == "0.6.13"
    assert info.lifecycle["on_timeout"] == "kill"
    assert info.volume_mounts == []


def test_default_time_is_five_minutes(make):
    sandbox, took = timed(make)
    info = sandbox.get_info()
    assert timedelta(seconds=290) < info.end_at - info.started_at < timedelta(seconds=310) + took


def timed(make, **options):
    """Makes a sandbox; says how long that took. It may have been started long before it is there to be used."""
    started = datetime.now(timezone.utc)
    return make(**options), datetime.now(timezone.utc) - started


def test_connect_finds_the_same_sandbox(half, fresh_sandbox):
    fresh_sandbox.files.write("kept.txt", "kept")
    for repeated in (half.Sandbox.connect(fresh_sandbox.sandbox_id), fresh_sandbox.connect()):
        assert repeated.sandbox_id == fresh_sandbox.sandbox_id
        assert repeated.files.read("kept.txt") == "kept"


def test_killed_sandbox_is_gone_for_every_call(half, fresh_sandbox):
    assert half.Sandbox.kill(fresh_sandbox.sandbox_id) is True
    assert fresh_sandbox.kill() is False
    for call in (fresh_sandbox.get_info, fresh_sandbox.connect, fresh_sandbox.pause, fresh_sandbox.create_snapshot, fresh_sandbox.get_metrics, fresh_sandbox.fork):
        with pytest.raises(SandboxNotFoundException):
            call()
    with pytest.raises(SandboxNotFoundException):
        fresh_sandbox.set_timeout(60)
    with pytest.raises(SandboxNotFoundException):
        fresh_sandbox.update_network({"deny_out": ["192.0.2.1"]})
    for call in (lambda: fresh_sandbox.commands.run("true"), lambda: fresh_sandbox.files.list("/"), lambda: fresh_sandbox.files.read("x")):
        with pytest.raises(NotRunning):
            call()


@pytest.mark.parametrize("name", ["nosuchsandbox", "i" * 20, "with-dash", "ünicode", "..", "a" * 500])
def test_unknown_ids_are_not_found(half, name):
    with pytest.raises(SandboxNotFoundException):
        half.Sandbox.connect(name)
    assert half.Sandbox.kill(name) is False


def test_unknown_template_is_said(half):
    with pytest.raises(e2b.SandboxException, match="no-such-template"):
        half.Sandbox.create("no-such-template")


def test_client_with_its_own_connection(half, server, key):
    client = half.client(**mode.current.connection(server, key))
    sandbox = client.Sandbox.create()
    assert sandbox.commands.run("echo bound").stdout == "bound\n"
    assert client.Sandbox.kill(sandbox.sandbox_id) is True
    assert isinstance(client.Volume.list(), list)


@pytest.mark.plain
def test_below_the_prefix_of_the_main_listener(half, server, key):
    """The dialect is at /e2b of every listener too, for clients that can reach only one port."""
    url = f"{server.url}/e2b"
    client = half.client(api_key=key, api_url=url, sandbox_url=url)
    sandbox = client.Sandbox.create()
    assert sandbox.is_running() is True
    assert sandbox.kill() is True


@pytest.mark.needs("idempotency_key")
def test_same_idempotency_key_is_the_same_sandbox(make, mark):
    first, second = make(idempotency_key=mark), make(idempotency_key=mark)
    assert first.sandbox_id == second.sandbox_id
    assert make(idempotency_key=f"{mark}-2").sandbox_id != first.sandbox_id


@pytest.mark.needs("http_version")
@pytest.mark.parametrize("version", ["1.1", "2"])
def test_both_versions_of_http(make, version):
    sandbox = make(http_version=version)
    assert sandbox.commands.run("echo hello").stdout == "hello\n"
    sandbox.files.write("x", "y")
    assert sandbox.files.read("x") == "y"


def test_time_out_of_a_request_is_kept(sandbox):
    with pytest.raises(e2b.TimeoutException):
        # The SDK waits for a millisecond at least, in which little could be told.
        sandbox.files.list("/usr", depth=3, request_timeout=0.000001)
    assert sandbox.is_running(request_timeout=120) is True


def test_workload_identity_is_refused_in_words(half):
    """Tokens of a cloud's identity provider are nothing this server has; it must not pretend."""
    with pytest.raises(e2b.SandboxException, match="iam"):
        half.Sandbox.create(iam={"tokens": {"aws": half.Secret.iam_token(audience="sts", token_type="JWT-SVID")}}, **NO_RETRIES)
