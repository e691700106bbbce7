"""The programs people use go out as if there were no gateway."""

import json
import socket
import threading

import pytest

import host_clients
from guest import AUTHORITY, Guest
from server import Server
from waiting import wait_for


@pytest.mark.quick
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_curl(world, wide, scheme):
    ran = wide.curl(f"{getattr(world.good, scheme)}/echo?{scheme}")
    assert ran["exit_code"] == 0, ran["output"]
    assert json.loads(ran["stdout"])["site"] == "good.test"
    request = world.good.requests[-1]
    assert (request.path, request.is_tls) == (f"/echo?{scheme}", scheme == "https")
    flow = wide.flow(name="good.test", verdict="allowed", protocol="tcp", port=getattr(world.good, f"{scheme}_port"))
    assert flow["address"] == world.good.address
    assert flow["sent_bytes"] > 0 and flow["received_bytes"] > 0


def test_the_certificate_that_arrives_is_the_sites_own(world, wide):
    """Nothing is bound to this host, so nobody looks into its TLS: without the tests' authority nobody trusts it."""
    ran = wide.run(["curl", "--silent", "--show-error", f"{world.good.https}/echo"])
    assert ran["exit_code"] == 60, ran["output"]


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_git_clones(world, wide, scheme):
    url = f"{getattr(world.good, scheme)}/git/small.git"
    wide.output(["git", "clone", "--quiet", url, f"/tmp/clone-{scheme}"], env={"GIT_SSL_CAINFO": AUTHORITY})
    assert wide.output(["cat", f"/tmp/clone-{scheme}/hello"]) == "from the repository\n"


def test_large_answers_arrive_whole_and_are_counted(world, wide):
    size = 32 << 20
    outcome = wide.output(f"curl -sS {world.good.http}/bytes/{size} | sha256sum; exit ${{PIPESTATUS[0]}}").split()[0]
    assert outcome == world.digest(size)
    largest = lambda: max((one["received_bytes"] for one in wide.flows(verdict="allowed")), default=0)  # noqa: E731
    wait_for(lambda: size <= largest() <= size + 1024, lambda: f"{size} bytes are on record, and no more: {largest()}")


def test_a_name_that_does_not_exist_is_not_found(wide):
    ran = wide.curl("http://nothing.test/")
    assert ran["exit_code"] == 6, ran["output"]


def test_a_port_without_listener_ends_the_connection(world, wide):
    """It is allowed, so it is no denial: it failed, and the record says so."""
    ran = wide.curl(f"http://good.test:{world.closed_port}/")
    assert ran["exit_code"] in (7, 52, 56), ran["output"]
    assert wide.flow(name="good.test", verdict="failed", port=world.closed_port)["reason"]


# --- what is neither TLS nor HTTP


@pytest.mark.parametrize("parts", ["hello\n", "hello", "\x00\x01\x02", "SSH-2.0-test\r\n", "EHLO me\r\n"])
def test_programs_may_speak_anything(world, wide, parts):
    """Also without an end of line, for which a gateway that looks for requests might wait for ever."""
    probe = wide.probe("connect", "good.test", world.echoes.port, parts)
    assert probe == {"outcome": "answered", "answer": parts}


def test_a_server_may_speak_first(world, wide):
    with socket.create_server((world.good.address, world.closed_port)) as listener:
        threading.Thread(target=greet, args=[listener], daemon=True).start()
        assert wide.probe("connect", "good.test", world.closed_port, "")["answer"] == "welcome\r\n"


def greet(listener):
    connection, _ = listener.accept()
    connection.sendall(b"welcome\r\n")
    connection.close()


# --- registries, as this host's own clients reach them


@pytest.fixture(scope="module")
def registries():
    """A sandbox of a server with nothing configured: the host's name servers, the host's proxy if it has one."""
    with Server(**host_clients.proxy_settings()) as server:
        api = server.api()
        with Guest(api) as guest:
            host_clients.copy_settings(guest)
            yield guest
        api.close()


def test_pip_installs(registries):
    command = "pip install --no-cache-dir --disable-pip-version-check --no-deps --target {place} six"
    host_clients.run(registries, command)
    assert registries.output(["python3", "-c", "import six; print(six.__name__)"], env={"PYTHONPATH": "/tmp/place"}) == "six\n"


def test_pip_installs_for_the_user_without_any_option(registries):
    """Where the system manages Python, pip refuses that by default; the program is found too."""
    quiet = "--no-cache-dir --disable-pip-version-check --no-deps --quiet"
    command = f"pip install {quiet} tabulate && echo one two | tabulate --format plain"
    ran = registries.run(command, env=host_clients.variables(), timeout=240)
    assert ran["exit_code"] == 0 and ran["stdout"].split() == ["one", "two"], ran


def test_npm_installs(registries):
    host_clients.run(registries, "npm install --no-audit --no-fund --prefix {place} is-number")
    assert registries.output(["node", "-e", "console.log(require('/tmp/place/node_modules/is-number')(7))"]) == "true\n"


def test_apt_downloads(registries):
    """As root inside, with folders of its own: lists of packages, and one package. Before the real program the template has one that
    says why it cannot add to the host."""
    options = host_clients.apt_options(registries)
    update = f"/usr/bin/apt-get {options} -q update"
    host_clients.run(registries, f"mkdir -p {{place}}/lists/partial {{place}}/archives/partial && {update}", user="root")
    command = f"cd {{place}} && /usr/bin/apt-get {options} -q download hostname && ls *.deb"
    host_clients.run(registries, command, user="root")
    assert "hostname_" in registries.output("ls /tmp/place/*.deb", user="root")


def test_what_went_to_registries_is_on_record(registries):
    names = lambda: {flow["name"] for flow in registries.flows(verdict="allowed")} - {None}  # noqa: E731
    wait_for(lambda: len(names()) >= 3, lambda: f"three hosts are on record: {names()}")
