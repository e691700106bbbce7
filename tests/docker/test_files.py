"""Files of containers: the workspace, folders of projects, copies in and out."""

import io
import os
import tarfile

import pytest

from api import describe_reply
from behind import Behind
from providers import docker_variables
from server import Server


def archive(**files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def execute(api, sandbox, *command):
    return api.ok("POST", f"/api/sandboxes/{sandbox}/execute", {"command": list(command)})


@pytest.fixture(scope="module")
def projects(tmp_path_factory):
    """The folder of projects on the daemon's host, with one project of the first ordinary user's."""
    folder = tmp_path_factory.mktemp("projects")
    (folder / "shop").mkdir()
    (folder / "shop" / "README").write_text("from the host\n")
    os.chown(folder / "shop", 1000, 1000)
    return folder


@pytest.fixture(scope="module")
def mapping(dockerd, projects):
    """A caller of a server that knows the folder of projects."""
    with Server("--ready", "0", variables=docker_variables(dockerd.host, DOCKER_PROJECTS=str(projects))) as server:
        api = server.api()
        yield api
        api.close()


@pytest.fixture
def project(mapping):
    """A sandbox of a project that has a folder."""
    created = mapping.ok("POST", "/api/sandboxes/", {"project_name": "shop"})["sandbox_id"]
    yield created
    mapping.remove(created)


def test_folder_of_a_project_is_the_workspace(mapping, docker, project, projects):
    assert execute(mapping, project, "cat", "README")["stdout"] == "from the host\n"
    done = execute(mapping, project, "sh", "-c", "echo from inside > made; mkdir -p folder; cat made")
    assert (done["exit_code"], done["stdout"]) == (0, "from inside\n"), done
    assert (projects / "shop" / "made").read_text() == "from inside\n"
    assert Behind(mapping, docker).volumes(project) == [], "the folder is in the place of a volume"
    mapping.remove(project)
    assert (projects / "shop" / "made").read_text() == "from inside\n", "a project outlives its sandboxes"


@pytest.mark.parametrize("name", ["../escape", "..", "a/../../b", "/etc", "shop/link", "shop/../shop/link", "with\0null"])
def test_name_of_a_project_leads_nowhere_else(mapping, projects, name):
    """Least of all by a link that somebody inside has made."""
    escape = projects.parent / "escape"
    escape.mkdir(exist_ok=True)
    (escape / "secret").write_text("of the host")
    if not (projects / "shop" / "link").is_symlink():
        (projects / "shop" / "link").symlink_to(escape)
    reply = mapping.post("/api/sandboxes/", {"project_name": name})
    if reply.status_code == 200:
        found = execute(mapping, reply.json()["sandbox_id"], "ls", "-A", "/workspace")["stdout"]
        mapping.remove(reply.json()["sandbox_id"])
        assert found == ""
    else:
        assert reply.status_code in (400, 422), describe_reply(reply)


def test_project_without_a_folder_is_said_by_its_name(mapping, docker):
    before = docker.remains()
    reply = mapping.post("/api/sandboxes/", {"project_name": "never-seen"})
    assert reply.status_code in (404, 422) and "never-seen" in reply.text, describe_reply(reply)
    assert docker.remains() == before


def test_folders_are_copied_in_and_out(api, sandbox):
    content = bytes(range(256)) * 4096
    reply = api.http.post(
        f"/api/sandboxes/{sandbox}/copy-to",
        params={"path": "/workspace"}, content=archive(data=content), headers={"Content-Type": "application/x-tar"},
    )  # fmt: skip
    assert reply.status_code == 200, describe_reply(reply)
    reply = api.http.post(f"/api/sandboxes/{sandbox}/copy-from", params={"path": "/workspace"})
    assert reply.status_code == 200, describe_reply(reply)
    with tarfile.open(fileobj=io.BytesIO(reply.content)) as tar:
        (entry,) = [entry for entry in tar if entry.isfile()]
        assert tar.extractfile(entry).read() == content


def test_workspace_may_be_without_a_volume(dockerd):
    before = dockerd.api.remains()
    with Server("--ready", "0", variables=docker_variables(dockerd.host, DOCKER_WORKSPACE="layer")) as server:
        api = server.api()
        sandbox = api.create()
        assert dockerd.api.volumes() == before["volumes"]
        assert api.run(sandbox, "touch /workspace/mine && ls /workspace")["output"] == "mine\n"
        api.remove(sandbox)
        api.close()
    assert dockerd.api.remains() == before
