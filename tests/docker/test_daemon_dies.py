"""A daemon that is away, killed in the middle of things, or frozen: typed errors, no leak, recovery, nothing promised is lost.

The server is never restarted, and its embedded sandboxes answer all the time.
"""

import pytest

import docker_labels
from api import describe_reply
from dockerd import Dockerd
from providers import docker_variables
from server import Server
from unreliable import Caller, Watcher, is_typed
from waiting import wait_for

TICKS = "while :; do echo x >> /tmp/ticks; sleep 0.05; done"
KILLS = 5
CALLERS = 6


@pytest.fixture(scope="module")
def own_dockerd():
    with Dockerd() as dockerd:
        yield dockerd


@pytest.fixture(scope="module")
def server(own_dockerd):
    variables = docker_variables(own_dockerd.host, SANDYARD_PROVIDERS="embedded")
    with Server("--ready", "0", variables=variables, LIMITS_SANDBOXES_PER_USER=0, LIFECYCLE_ORPHAN_GRACE=2) as server:
        yield server
        # Deletes what is left while the daemon is there; see `Server.close`.
        wait_for(own_dockerd.api.answers, "the daemon is there at the end")


@pytest.fixture(scope="module")
def api(server):
    api = server.api()
    yield api
    api.close()


def provider_health(api, name):
    health = api.get("/health").json()
    return health["status"], next(one for one in health["providers"] if one["name"] == name)


def is_well(api):
    return provider_health(api, "docker")[1]["status"] == "healthy"


def recovers(api, sandbox=None):
    """Waits until Docker's sandboxes are made and used again, with the server as it is."""

    def works():
        created = api.post("/sandboxes/create", {"user_id": "tester", "provider": "docker"})
        if created.status_code != 200:
            assert is_typed(created), describe_reply(created)
            return False
        api.remove(created.json()["sandbox_id"])
        return True

    wait_for(works, "sandboxes are made again", 180)
    wait_for(lambda: is_well(api), "health says so", 120)


def same_as_rows(server, docker, provider="docker"):
    """Waits until there are exactly the containers the rows speak of, and no volume more."""
    api = server.api()

    def differences():
        rows = {one["provider_sandbox_id"] for one in api.all() if one["provider"] == provider}
        return rows ^ {docker_labels.instance_id(one) for one in docker_labels.sandboxes(docker)}

    wait_for(lambda: not differences(), lambda: f"rows and containers are the same; {differences()}\n{server.tail()}", 120)

    def unused():
        mounts = [mount for one in docker.containers() for mount in one["Mounts"]]
        return set(docker.volumes()) - {mount.get("Name") for mount in mounts}

    wait_for(lambda: not unused(), lambda: f"all volumes are somebody's; not so: {unused()}", 120)
    assert docker.networks() == []
    api.close()


def test_unreachable_daemon_is_reported_and_recovers(server, api, own_dockerd):
    sandbox = api.create()
    api.write(sandbox, "/workspace/kept", "kept")
    api.run(sandbox, TICKS, background=True)
    own_dockerd.kill()
    try:
        with Watcher(server) as watcher:
            for _ in range(3):
                reply = api.post("/sandboxes/create", {"user_id": "tester", "provider": "docker"})
                assert is_typed(reply), describe_reply(reply)
                assert reply.json()["code"] in ("unavailable", "timed_out"), describe_reply(reply)
                assert "ocker" in reply.text, describe_reply(reply)
            reply = api.post(f"/sandboxes/{sandbox}/pause")
            assert is_typed(reply), describe_reply(reply)
            wait_for(lambda: not is_well(api), "health says that Docker is away", 120)
            status, docker = provider_health(api, "docker")
            assert (status, docker["status"]) == ("degraded", "unreachable") and docker["since"], docker
            assert provider_health(api, "embedded")[1]["status"] == "healthy"
            assert api.get("/health").status_code == 200, "the server itself can work"
            assert 'provider="docker"' in api.get("/metrics").text
            # What is remembered is told without asking anybody.
            assert api.info(sandbox)["sandbox_id"] == sandbox
            assert api.status(api.create(provider="embedded")) == "running"
        print(watcher.summary())
    finally:
        own_dockerd.start()
    recovers(api)
    assert api.get("/health").json()["status"] == "healthy"
    assert api.read(sandbox, "/workspace/kept") == "kept"
    count = int(api.run(sandbox, "stat -c %s /tmp/ticks")["stdout"])
    wait_for(lambda: int(api.run(sandbox, "stat -c %s /tmp/ticks")["stdout"]) > count, "the background command went on")
    api.remove(sandbox)


@pytest.mark.timeout(900)
def test_daemon_killed_in_the_middle_of_everything(server, api, own_dockerd):
    callers = [Caller(number, server) for number in range(CALLERS)]
    with Watcher(server) as watcher:
        for caller in callers:
            caller.start()
        for _ in range(KILLS):
            answers = sum(caller.answers for caller in callers)

            def is_enough(answers=answers):
                return sum(one.answers for one in callers) > answers + 12 or any(one.broken for one in callers)

            wait_for(is_enough, "work is done between the kills", 240)
            own_dockerd.restart()
        recovers(api)
        for caller in callers:
            caller.is_stopping.set()
        for caller in callers:
            caller.join(300)
    assert [caller.broken for caller in callers if caller.broken] == []
    assert not any(caller.is_alive() for caller in callers)
    print(watcher.summary())
    refusals = [caller.refusals for caller in callers]
    print(f"{KILLS} kills, {sum(caller.answers for caller in callers)} answers, refusals {refusals}")
    promised = {sandbox: files for one in callers for sandbox, files in one.files.items() if sandbox not in one.deleted}
    rows = {one["sandbox_id"] for one in api.all()}
    assert set(promised) <= rows, "no promised sandbox is lost"
    for sandbox, files in promised.items():
        for path, content in files.items():
            assert api.read(sandbox, path) == content
    for sandbox in promised:
        api.remove(sandbox)
    same_as_rows(server, own_dockerd.api)


@pytest.mark.timeout(900)
def test_frozen_daemon_does_not_block_other_providers(server, api, own_dockerd):
    sandbox = api.create()
    api.write(sandbox, "/workspace/kept", "kept")
    own_dockerd.freeze()
    try:
        with Watcher(server) as watcher:
            callers = [Caller(f"frozen-{number}", server, limit=1) for number in range(3)]
            for caller in callers:
                caller.start()
            refused = lambda: all(caller.refusals for caller in callers) or any(one.broken for one in callers)  # noqa: E731
            wait_for(refused, lambda: f"every caller is told: {[one.refusals for one in callers]}", 240)
            wait_for(lambda: not is_well(api), "health says that Docker does not answer", 120)
            assert api.status(api.create(provider="embedded")) == "running"
        print(watcher.summary())
    finally:
        own_dockerd.thaw()
    recovers(api)
    for caller in callers:
        caller.is_stopping.set()
    for caller in callers:
        caller.join(300)
    assert [caller.broken for caller in callers if caller.broken] == []
    assert api.read(sandbox, "/workspace/kept") == "kept"
    for one in api.all():
        api.remove(one["sandbox_id"])
    same_as_rows(server, own_dockerd.api)


@pytest.mark.timeout(600)
def test_containers_that_died_with_the_daemon_come_back_with_their_files():
    """Without `live-restore` a daemon takes its containers with it, as after a reboot."""
    with Dockerd(is_restoring=False) as dockerd:
        variables = docker_variables(dockerd.host)
        with Server("--ready", "0", variables=variables, LIFECYCLE_ORPHAN_GRACE=2) as server:
            api = server.api()
            created = [api.create(memory_limit="128m") for _ in range(3)]
            for sandbox in created:
                api.write(sandbox, "/workspace/kept", sandbox)
                api.write(sandbox, "/home/user/kept", sandbox)
            api.pause(created[1])
            dockerd.restart()
            for sandbox in created:
                for path in ("/workspace/kept", "/home/user/kept"):
                    body = {"sandbox_id": sandbox, "path": path}

                    def is_back(body=body, sandbox=sandbox):
                        reply = api.post("/sandboxes/read-file", body)
                        assert reply.status_code == 200 or is_typed(reply), describe_reply(reply)
                        return reply.status_code == 200 and reply.json()["content"] == sandbox

                    wait_for(is_back, lambda: f"its files are there\n{server.tail()}", 180)
            assert {one["sandbox_id"] for one in api.all()} == set(created)
            for sandbox in created:
                api.remove(sandbox)
            api.close()
            same_as_rows(server, dockerd.api)


def test_server_starts_without_its_daemon(tmp_path):
    """The daemon may come later; meanwhile everything else works, and who asks is told."""
    variables = docker_variables(f"unix://{tmp_path}/nobody.sock", SANDYARD_PROVIDERS="embedded")
    with Server("--ready", "0", variables=variables, is_degraded=True) as server:
        api = server.api()
        assert api.get("/health").json()["status"] == "degraded"
        reply = api.post("/sandboxes/create", {"user_id": "tester", "provider": "docker"})
        assert reply.status_code == 503 and reply.json()["code"] == "unavailable", describe_reply(reply)
        admin = server.admin()
        assert "nobody.sock" in admin.get("/info").text, "the operator is told which socket it was"
        admin.close()
        sandbox = api.create(provider="embedded")
        assert api.run(sandbox, "echo here")["output"] == "here\n"
        api.remove(sandbox)
        api.close()
