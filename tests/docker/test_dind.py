"""A daemon in a privileged container that asks for a client certificate, as seed 004 sets it up for production."""

from pathlib import Path

import pytest

from api import describe_reply
from certificates import Certificates
from docker_api import DockerApi
from dockerd import IMAGE, Dockerd, give_image, images, import_unless_given
from ports import free_port
from providers import docker_variables
from server import Server
from waiting import wait_for

# The data of the inner daemon is a folder of this host: an overlay on an overlay does not work.
INNER_DATA = "/var/lib/docker"
CAP_SYS_RESOURCE = 24


def privileged():
    """What Docker's `Privileged` means, without rights that this host itself does not have: to ask for those is an error."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapBnd:")]
    own_capabilities, last = int(line.split()[1], 16), int(Path("/proc/sys/kernel/cap_last_cap").read_text())
    lacking = [number for number in range(last + 1) if not own_capabilities >> number & 1]
    if not lacking:
        return {"Privileged": True}
    assert lacking == [CAP_SYS_RESOURCE], f"this host lacks the rights {lacking}"
    return {
        "CapAdd": ["ALL"],
        "CapDrop": ["SYS_RESOURCE"],
        "SecurityOpt": ["seccomp=unconfined", "apparmor=unconfined"],
        "DeviceCgroupRules": ["a *:* rwm"],
        "MaskedPaths": [],
        "ReadonlyPaths": [],
    }


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def outer():
    with Dockerd() as dockerd:
        yield dockerd


@pytest.fixture(scope="module")
def dind(outer, certificates):
    """The inner daemon's address. It shares this host's loopback, and nothing of the network is changed."""
    port = free_port()
    options = ["--host", f"tcp://127.0.0.1:{port}", "--bridge=none", "--iptables=false", "--ip6tables=false"]
    options += ["--ip-forward=false", "--ip-masq=false", "--data-root", INNER_DATA, "--log-level", "warn"]
    # Cgroups are the host's, and the outer daemon takes away its own.
    options += ["--cgroup-parent", f"/{outer.cgroup}"]
    data = outer.data / "inner"
    tar = give_image(data)
    # The image's layer is where it is on this host.
    binds = [f"{data}:{INNER_DATA}", f"{images()}:{images()}:ro", f"{certificates.daemon}:/certs:ro"]
    binds.append("/sys/fs/cgroup:/sys/fs/cgroup")
    host = {**privileged(), "NetworkMode": "host", "Binds": binds}
    command = ["dockerd", *options, *certificates.daemon_options("/certs")]
    container = outer.api.start("sandyard-dind", Image=IMAGE, Cmd=command, HostConfig=host)
    inner = DockerApi(url=f"https://127.0.0.1:{port}", certificates=certificates.client)
    try:
        is_up = lambda: inner.answers() or _is_running(outer, container)  # noqa: E731
        wait_for(lambda: is_up() is True, lambda: f"the inner daemon answers:\n{outer.api.logs(container)}", 240)
        import_unless_given(inner, tar)
        yield f"tcp://127.0.0.1:{port}", inner
        remaining = inner.remains()
        assert not any(remaining.values()), f"left behind: {remaining}"
        inner.clear()
    finally:
        inner.close()


def _is_running(outer, container):
    state = outer.api.container(container)["State"]
    assert state["Running"], f"the inner daemon ended:\n{outer.api.logs(container)}"


def variables(host, folder):
    return docker_variables(host, DOCKER_TLS_VERIFY="1", DOCKER_CERT_PATH=str(folder), SANDYARD_PROVIDERS="embedded")


def test_containers_are_made_behind_tls(dind, certificates):
    host, inner = dind
    with Server("--ready", "0", variables=variables(host, certificates.client)) as server:
        api = server.api()
        sandbox = api.ok("POST", "/api/sandboxes/", {"project_name": "test", "memory_limit": "1g", "cpu_limit": "1.0"})
        inspected = inner.container(sandbox["container_id"])
        assert (inspected["HostConfig"]["Memory"], inspected["HostConfig"]["NanoCpus"]) == (1 << 30, 1_000_000_000)
        sandbox = sandbox["sandbox_id"]
        assert api.run(sandbox, "echo in a container of a container")["output"] == "in a container of a container\n"
        api.write(sandbox, "/workspace/kept", "kept")
        api.pause(sandbox)
        assert api.read(sandbox, "/workspace/kept") == "kept"
        api.ok("POST", f"/api/sandboxes/{sandbox}/stop")
        api.ok("POST", f"/api/sandboxes/{sandbox}/start")
        assert api.read(sandbox, "/workspace/kept") == "kept"
        api.run(sandbox, "cd /workspace && exec python3 -m http.server 3000", background=True)
        wait_for(lambda: api.get(f"/p/{sandbox}/3000/kept").text == "kept", "a port is seen from outside")
        server.kill()
        server.start()
        assert api.read(sandbox, "/workspace/kept") == "kept"
        api.remove(sandbox)
        api.close()


def no_certificate(certificates, folder):
    """A folder that trusts the daemon and has nothing to show."""
    folder.mkdir()
    (folder / "ca.pem").write_bytes((certificates.client / "ca.pem").read_bytes())
    return folder


@pytest.mark.parametrize("certificate", ["other_user", "distrustful", "without", "nowhere"])
def test_wrong_certificate_is_said_and_everything_else_works(dind, certificates, tmp_path, certificate):
    host, _ = dind
    folder = {
        "without": lambda: no_certificate(certificates, tmp_path / "without"),
        "nowhere": lambda: tmp_path / "nowhere",
    }.get(certificate, lambda: getattr(certificates, certificate))()
    # What the system trusts makes up for nothing that `ca.pem` does not say.
    system = {"SSL_CERT_FILE": str(certificates.client / "ca.pem")}
    with Server("--ready", "0", variables={**variables(host, folder), **system}, is_degraded=True) as server:
        api = server.api()
        reply = api.post("/sandboxes/create", {"user_id": "tester", "provider": "docker"})
        assert reply.status_code in (502, 503) and reply.json()["code"] in ("unavailable", "provider_failed"), describe_reply(reply)
        admin = server.admin()
        reason = admin.get("/info").text.lower()
        admin.close()
        assert any(word in reason for word in ("certificate", "tls", ".pem")), reason
        health = api.get("/health").json()
        (docker,) = [one for one in health["providers"] if one["name"] == "docker"]
        assert (health["status"], docker["status"]) == ("degraded", "unreachable")
        sandbox = api.create(provider="embedded")
        assert api.run(sandbox, "echo here")["output"] == "here\n"
        api.remove(sandbox)
        api.close()


def test_plain_words_to_a_daemon_with_tls_are_said_to_be_so(dind):
    """`DOCKER_TLS_VERIFY` forgotten."""
    host, _ = dind
    plain = docker_variables(host, SANDYARD_PROVIDERS="embedded")
    with Server("--ready", "0", variables=plain, is_degraded=True) as server:
        api = server.api()
        reply = api.post("/sandboxes/create", {"user_id": "tester", "provider": "docker"})
        assert reply.status_code in (502, 503) and reply.json()["code"] in ("unavailable", "provider_failed"), describe_reply(reply)
        api.close()
