"""The life of a container: pause, stop, end, and a server that dies in between."""

import docker_labels
from dockerd import IMAGE
from providers import docker_variables
from server import Server
from waiting import wait_for

TICKS = "while :; do echo x >> /tmp/ticks; sleep 0.05; done"


def ticks(api, sandbox):
    return int(api.run(sandbox, "stat -c %s /tmp/ticks 2>/dev/null || echo 0")["stdout"])


def test_pause_freezes_the_container(api, sandbox, behind):
    pid = api.run(sandbox, TICKS, background=True)["process_id"]
    wait_for(lambda: ticks(api, sandbox) > 0, "it ticks")
    api.pause(sandbox)
    assert behind.state(sandbox) == "paused"
    assert api.run(sandbox, f"kill -0 {pid} && echo alive")["output"] == "alive\n"
    assert behind.state(sandbox) == "running"
    count = ticks(api, sandbox)
    wait_for(lambda: ticks(api, sandbox) > count, "it ticks on")


def test_stop_ends_it_and_keeps_all_files(api, sandbox, behind):
    files = ("/home/user/kept", "/workspace/kept", "/etc/kept")
    api.run(sandbox, f"for f in {' '.join(files)}; do echo kept > $f; done", user="root")
    api.run(sandbox, "sleep 1000", background=True)
    api.ok("POST", f"/api/sandboxes/{sandbox}/stop")
    assert behind.state(sandbox) == "exited"
    api.ok("POST", f"/api/sandboxes/{sandbox}/start")
    assert behind.state(sandbox) == "running"
    assert [api.read(sandbox, file) for file in files] == ["kept\n"] * 3
    assert api.run(sandbox, "pgrep -c sleep || true")["output"] == "0\n"


def test_delete_takes_container_and_volumes(api, docker, make, behind):
    before = docker.remains()
    for prepare in (lambda sandbox: None, api.pause, lambda sandbox: api.ok("POST", f"/api/sandboxes/{sandbox}/stop")):
        sandbox = make()
        volumes = behind.volumes(sandbox)
        assert volumes
        prepare(sandbox)
        assert api.ok("DELETE", f"/sandboxes/{sandbox}")["success"] is True
        assert docker.remains() == before


def test_container_that_exited_is_reported_and_restarted(api, docker, sandbox, behind):
    api.write(sandbox, "/workspace/kept", "kept")
    name = api.info(sandbox)["provider_sandbox_id"]
    docker.call("POST", f"/containers/{name}/kill", params={"signal": "SIGKILL"})
    wait_for(lambda: behind.state(sandbox) == "exited", "it is dead")

    def works():
        reply = api.post("/sandboxes/run-command", {"sandbox_id": sandbox, "command": "cat /workspace/kept"})
        assert reply.status_code in (200, 409, 502, 503), reply.text
        return reply.status_code == 200 and reply.json()["output"] == "kept"

    wait_for(works, "the next calls bring it back with its files", 180)


def test_server_that_was_killed_finds_its_containers_again(dockerd):
    with Server("--ready", "0", variables=docker_variables(dockerd.host)) as server:
        api = server.api()
        running, frozen, stopped = (api.create() for _ in range(3))
        pid = api.run(running, TICKS, background=True)["process_id"]
        for sandbox in (running, frozen, stopped):
            api.write(sandbox, "/workspace/kept", sandbox)
        api.pause(frozen)
        api.ok("POST", f"/api/sandboxes/{stopped}/stop")
        wait_for(lambda: ticks(api, running) > 0, "it ticks")
        count = ticks(api, running)
        server.kill()
        server.start()
        statuses = {one["sandbox_id"]: one["status"] for one in api.all()}
        assert (statuses[running], statuses[frozen]) == ("running", "paused") and statuses[stopped] in ("stopped", "paused")
        assert api.run(running, f"kill -0 {pid} && echo alive")["output"] == "alive\n"
        wait_for(lambda: ticks(api, running) > count, "the background command went on")
        api.ok("POST", f"/api/sandboxes/{stopped}/start")
        for sandbox in (running, frozen, stopped):
            assert api.read(sandbox, "/workspace/kept") == sandbox
        api.close()


def test_containers_of_others_are_left_alone(dockerd, docker, sandbox):
    """Those of another installation and those of no installation at all; the server searches for orphans every second."""
    foreign = docker.start("somebody-elses", Image=IMAGE, Cmd=["sleep", "1000"], HostConfig={"NetworkMode": "none"})
    with Server("--ready", "0", variables=docker_variables(dockerd.host), LIFECYCLE_ORPHAN_GRACE=1) as server:
        api = server.api()
        created = api.create()
        names = [one["Id"] for one in docker_labels.sandboxes(docker)]
        assert len(names) >= 2
        assert [one["sandbox_id"] for one in api.all()] == [created]
        api.remove(created)
        api.close()
    assert docker.container(foreign)["State"]["Running"] is True
    assert sandbox
    docker.remove(foreign)


def test_orphans_are_reported_and_workspaces_of_removed_containers_stay(dockerd, docker):
    """A container without a row, as there are when an older database is restored, is listed for admins and stays until one removes
    it; so does for a week the volume of a container that somebody removed by hand. One that its sandbox does not mean is swept."""
    before = docker.remains()
    with Server("--ready", "0", variables=docker_variables(dockerd.host), LIFECYCLE_ORPHAN_GRACE=1) as server:
        api = server.api()
        sandbox, lost = api.create(), api.create()
        original = docker.container(api.info(sandbox)["provider_sandbox_id"])
        labels, unknown = original["Config"]["Labels"], sandbox[::-1]
        marks = {key: value.replace(sandbox, unknown) for key, value in labels.items()}
        name, volume = original["Name"].lstrip("/").replace(sandbox, unknown), marks[docker_labels.WORKSPACE]
        own = {docker_labels.INSTALLATION: labels[docker_labels.INSTALLATION], docker_labels.WORKSPACE: name}
        docker.call("POST", "/volumes/create", json={"Name": volume, "Labels": own})
        host = {"NetworkMode": "none", "Binds": [f"{volume}:/workspace"]}
        created = docker.start(name, Image=IMAGE, Cmd=["sleep", "1000"], Labels=marks, HostConfig=host)
        plain = {"NetworkMode": "none"}
        labels = {**labels, docker_labels.WORKSPACE: ""}
        twin = docker.start(f"{name}-twin", Image=IMAGE, Cmd=["sleep", "1000"], Labels=labels, HostConfig=plain)

        container = api.info(lost)["provider_sandbox_id"]
        lost_volume = docker.container(container)["Config"]["Labels"][docker_labels.WORKSPACE]
        docker.remove(container)
        wait_for(lambda: is_reported(api, lost), "the loss is reported", 180)
        assert api.delete(f"/sandboxes/{lost}").status_code in (200, 404)
        word = lost_volume.replace("sandyard-ws-", "sandyard-lost-")
        wait_for(lambda: word in docker.volumes(), lambda: f"it is noted: {docker.volumes()}\n{server.tail()}", 240)
        wait_for(lambda: twin not in [one["Id"] for one in docker.containers()], "what its sandbox does not mean is swept", 240)
        assert api.run(sandbox, "echo untouched")["output"] == "untouched\n"
        api.remove(sandbox)

        admin = server.admin()
        (one,) = admin.ok("GET", "/instances/unknown")["instances"]
        assert (one["id"], one["sandbox_id"], one["provider"], one["state"]) == (created, unknown, "docker", "running")
        assert lost_volume in docker.volumes(), "what is in it is kept"
        admin.ok("DELETE", f"/instances/unknown/{created}")
        assert admin.delete(f"/instances/unknown/{created}").status_code == 404
        assert admin.ok("GET", "/instances/unknown")["instances"] == []
        admin.close()
        for name in (lost_volume, word):
            docker.call("DELETE", f"/volumes/{name}")
        remaining = lambda: {kind: set(names) - set(before[kind]) for kind, names in docker.remains().items()}  # noqa: E731
        wait_for(lambda: not any(remaining().values()), lambda: f"nothing is left: {remaining()}\n{server.tail()}", 240)
        api.close()


def is_reported(api, sandbox):
    """Whether a sandbox that is gone is said to be."""
    reply = api.post("/sandboxes/run-command", {"sandbox_id": sandbox, "command": "true"})
    assert reply.status_code != 200 and reply.json()["code"] != "internal", reply.text
    return reply.status_code in (404, 409, 502)
