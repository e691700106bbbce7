"""The Docker-style dialect beyond its curl session."""

import io
import tarfile

import pytest

from api import describe_reply

pytestmark = pytest.mark.quick


@pytest.fixture
def container(api):
    body = {"project_name": "tests", "memory_limit": "256m", "cpu_limit": "0.5", "ports": {"3000": 13000}}
    created = api.ok("POST", "/api/sandboxes/", body)
    yield created["sandbox_id"]
    api.remove(created["sandbox_id"])


def execute(api, sandbox, *command, **body):
    return api.ok("POST", f"/api/sandboxes/{sandbox}/execute", {"command": list(command), **body})


def test_a_container_is_as_asked(api, container):
    seen = api.ok("GET", f"/api/sandboxes/{container}")
    assert seen["resource_limits"] == {"memory": "256m", "cpu": "0.5"}
    assert {port: str(to) for port, to in seen["ports"].items()} == {"3000": "13000"}
    project_sandboxes = api.ok("GET", "/api/sandboxes/", params={"project_name": "tests"})
    others = api.ok("GET", "/api/sandboxes/", params={"project_name": "no-such-project"})
    assert container in [one["sandbox_id"] for one in project_sandboxes] and others == []


def test_commands_run_in_the_workspace(api, container):
    assert execute(api, container, "pwd")["stdout"] == "/workspace\n"
    assert execute(api, container, "pwd", workdir="/tmp")["stdout"] == "/tmp\n"
    failed = execute(api, container, "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (failed["exit_code"], failed["stdout"], failed["stderr"]) == (3, "out\n", "err\n")


def test_stop_and_start_are_idempotent_and_a_stopped_one_runs_nothing(api, container):
    execute(api, container, "touch", "/workspace/kept")
    for _ in range(2):
        assert api.ok("POST", f"/api/sandboxes/{container}/stop")["success"] is True
    assert api.ok("GET", f"/api/sandboxes/{container}")["status"] == "stopped"
    reply = api.post(f"/api/sandboxes/{container}/execute", {"command": ["true"]})
    assert reply.status_code == 400, describe_reply(reply)
    for _ in range(2):
        assert api.ok("POST", f"/api/sandboxes/{container}/start")["success"] is True
    assert execute(api, container, "ls", "/workspace")["stdout"] == "kept\n"


def archive(**files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name.replace("__", "/"))
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def test_folders_are_copied_in_both_directions(api, container):
    query = {"path": "/workspace"}
    sent = archive(a=b"one", dir__b=b"two")
    reply = api.http.post(
        f"/api/sandboxes/{container}/copy-to", params=query, content=sent, headers={"Content-Type": "application/x-tar"}
    )
    assert reply.status_code == 200, describe_reply(reply)
    assert execute(api, container, "cat", "a", "dir/b")["stdout"] == "onetwo"
    reply = api.http.post(f"/api/sandboxes/{container}/copy-from", params=query)
    assert reply.status_code == 200, describe_reply(reply)
    with tarfile.open(fileobj=io.BytesIO(reply.content)) as tar:
        files = {entry.name.split("workspace/")[-1].lstrip("./"): entry for entry in tar if entry.isfile()}
        assert {name: tar.extractfile(entry).read() for name, entry in files.items()} == {"a": b"one", "dir/b": b"two"}


def test_an_archive_cannot_write_outside_its_folder(api, container):
    for name in ("../evil", "/etc/evil", "dir__..__..__evil"):
        sent = archive(**{name: b"evil"})
        api.http.post(
            f"/api/sandboxes/{container}/copy-to",
            params={"path": "/workspace/in"}, content=sent, headers={"Content-Type": "application/x-tar"},
        )  # fmt: skip
    found = execute(api, container, "sh", "-c", "ls /etc/evil /evil /workspace/evil 2>/dev/null; true", workdir="/tmp")
    assert found["stdout"] == ""


def test_cleanup_removes_only_what_has_been_stopped_long_enough(api, container):
    api.ok("POST", f"/api/sandboxes/{container}/stop")
    assert container not in str(api.ok("POST", "/api/sandboxes/cleanup?hours=24"))
    assert container in str(api.ok("POST", "/api/sandboxes/cleanup?hours=0"))
    assert api.get(f"/api/sandboxes/{container}").status_code == 404


def test_delete_says_what_it_did(api, container):
    reply = api.ok("DELETE", f"/api/sandboxes/{container}?remove_volume=true")
    assert reply["success"] is True and reply["message"]


@pytest.mark.parametrize(
    "limits", [{"memory_limit": "lots"}, {"cpu_limit": "-1"}, {"memory_limit": "1"}, {"ports": {"x": 1}}]
)
def test_limits_that_make_no_sense_are_422(api, limits):
    reply = api.post("/api/sandboxes/", {"project_name": "tests", **limits})
    assert reply.status_code == 422, describe_reply(reply)
    assert reply.json()["detail"]
