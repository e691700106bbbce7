"""What an operator decides for every sandbox: what is denied, how much, by which proxy, and whether egress is enabled."""

import contextlib

import pytest

from data_dir import DataDir
from guest import Guest
from relays import HttpProxy, SocksProxy
from server import Server
from waiting import wait_for


@pytest.fixture(scope="module")
def data():
    """One data directory for most servers here, one after another: making the first sandbox of one takes its time.

    Never for two at once: each server opens the ways out of all sandboxes of its directory, with its own settings.
    """
    data = DataDir()
    yield data
    data.remove()


@contextlib.contextmanager
def sandbox_of(world, data, environment=(), **settings):
    """A sandbox of a server with settings of its own, and with a data directory of its own if there is none for it."""
    server = Server("--ready", "0", data=data, **{**world.settings, **settings})
    server.settings.update(environment)
    with server:
        api = server.api()
        with Guest(api, world) as guest:
            yield guest
        api.close()


# --- rules for all, and limits, on one server


@pytest.fixture(scope="module")
def bounded(world):
    limits = {
        "GATEWAY_DENIED": "other.test,*:25",
        "GATEWAY_MAX_CONNECTIONS": 20,
        "GATEWAY_BYTES_PER_SECOND": 1 << 20,
    }
    with sandbox_of(world, None, **limits) as guest:
        yield guest


@pytest.fixture(scope="module")
def few_questions(world):
    """A server of its own, since other tests look names up as well."""
    with sandbox_of(world, None, GATEWAY_QUERIES_PER_SECOND=1) as guest:
        yield guest


def test_what_the_operator_denies_no_policy_opens(world, bounded):
    bounded.set_policy(allow_out=["other.test", "good.test:25", "*"])
    assert bounded.curl(f"{world.other.http}/echo")["exit_code"] == 6
    bounded.denied("denied_by_operator", name="other.test")
    assert bounded.probe("connect", "good.test", 25)["outcome"] != "answered"
    bounded.denied("denied_by_operator", name="good.test", port=25)
    assert bounded.curl(f"{world.good.http}/echo")["exit_code"] == 0


def test_connections_over_the_limit_are_refused_and_on_record(world, bounded):
    def those_that_answer(count):
        probe = bounded.probe("open_many", "good.test", world.echoes.port, count)
        assert probe.get("right", 0) <= 20, probe
        return probe.get("right")

    # A connection of before may still count for a moment after its program has ended.
    wait_for(lambda: those_that_answer(50) == 20, "twenty are answered")
    flow = bounded.denied("too_many")
    assert "connections" in flow["reason"]
    # When those are closed there is room again.
    wait_for(lambda: world.echoes.open == 0, "all are closed")
    wait_for(lambda: those_that_answer(5) == 5, "there is room for new ones")


def test_look_ups_over_the_limit_are_refused_and_on_record(world, few_questions):
    """A flood of names is a way to carry data as well."""
    # Many at a time, so that they are too many however slow each is.
    script = (
        "import socket, concurrent.futures as futures\n"
        "def ask(n):\n"
        "    try: socket.getaddrinfo(f'{n}.flood.test', 80)\n"
        "    except OSError: pass\n"
        "with futures.ThreadPoolExecutor(20) as pool: list(pool.map(ask, range(200)))\n"
    )
    few_questions.output(["python3", "-c", script], env={"RES_OPTIONS": "attempts:1"})
    few_questions.denied("too_many", protocol="dns")
    assert len(set(world.names.was_asked(".flood.test"))) < 200


def test_bytes_are_counted_under_a_bandwidth_limit_and_all_arrive(world, bounded):
    """Speed decides nothing here: the limit must lose no byte, and count each."""
    size = 3 << 20
    outcome = bounded.output(f"curl -sS {world.good.http}/bytes/{size} | sha256sum").split()[0]
    assert outcome == world.digest(size)
    flows = lambda: [flow["received_bytes"] for flow in bounded.flows(verdict="allowed")]  # noqa: E731
    wait_for(lambda: any(size <= count <= size + 1024 for count in flows()), lambda: f"{size} among {flows()}")


# --- no way out at all


def test_without_the_gateway_nothing_leads_out(world, data):
    before = len(world.near_port.seen)
    with sandbox_of(world, data, GATEWAY_ENABLED="false") as guest:
        # Nobody answers, so asking once is enough.
        outcome = guest.probe("lookup", "good.test", env={"RES_OPTIONS": "attempts:1"})
        assert outcome["outcome"].startswith("lookup: ")
        assert guest.probe("connect", world.own_address, world.near_port.port)["outcome"] not in ("answered", "timeout")
        assert guest.output("echo works") == "works\n"
    assert world.near_port.seen[before:] == []


# --- proxies


def both(world, guest):
    for scheme in ("http", "https"):
        ran = guest.curl(f"{getattr(world.good, scheme)}/by-proxy")
        assert ran["exit_code"] == 0, ran["output"]


def asked_for(proxy, site):
    """Whether the proxy was asked for both ports of a site, by its name or address."""
    ports = {port for _, target in proxy.request_log for port in (site.http_port, site.https_port) if f":{port}" in target}
    return ports == {site.http_port, site.https_port}


@pytest.mark.parametrize("kind", [HttpProxy, SocksProxy])
@pytest.mark.parametrize("credentials", [None, "somebody:a-pass-word"])
def test_everything_goes_by_the_operators_proxy(world, data, kind, credentials):
    with kind(world.resolve, credentials) as proxy, sandbox_of(world, data, GATEWAY_PROXY=proxy.url) as guest:
        both(world, guest)
        assert asked_for(proxy, world.good), proxy.request_log
        # The policy counts before the proxy is asked.
        guest.set_policy(deny_out=["*"], allow_out=["good.test"])
        count = len(proxy.request_log)
        guest.curl(f"{world.other.http}/echo")
        guest.probe("connect", world.own_address, world.evil_port.port)
        assert proxy.request_log[count:] == []
        if credentials:
            displayed = str(guest.api.events(guest.id)) + str(guest.flows())
            assert "a-pass-word" not in displayed


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "ALL_PROXY"])
def test_the_environments_proxy_is_used_when_nothing_is_set(world, data, variable):
    with HttpProxy(world.resolve) as proxy:
        with sandbox_of(world, data, {variable: proxy.url}) as guest:
            assert guest.curl(f"{world.good.https}/by-environment")["exit_code"] == 0
        assert any(f":{world.good.https_port}" in target for _, target in proxy.request_log)


def test_a_proxy_that_is_down_is_a_failure_with_a_reason(world, data):
    proxy = HttpProxy(world.resolve)
    proxy.__enter__()
    with sandbox_of(world, data, GATEWAY_PROXY=proxy.url) as guest:
        proxy.__exit__()
        assert guest.curl(f"{world.good.https}/echo")["exit_code"] != 0
        assert guest.flow(verdict="failed", name="good.test")["reason"]


# --- certificates and the directory of every sandbox


def test_programs_trust_a_certificate_authority_of_the_operator(world, data):
    url = f"{world.good.https}/echo"
    python = f"python3 -c 'import urllib.request as u; u.urlopen(\"{url}\")'"
    with sandbox_of(world, data) as guest:
        assert guest.run(["curl", "-sS", url])["exit_code"] == 60
        assert "CERTIFICATE_VERIFY_FAILED" in guest.run(python)["stderr"]
    with sandbox_of(world, data, SANDBOX_CA_CERTIFICATES=str(world.authority.path)) as guest:
        guest.output(["curl", "-sS", url])
        guest.output(python)
        assert world.authority.pem.split()[2] in guest.output("cat $NODE_EXTRA_CA_CERTS")


def test_every_api_starts_in_the_operators_directory(world, data):
    with sandbox_of(world, data, SANDBOX_WORKDIR="/srv/work") as guest:
        assert guest.output("pwd") == "/srv/work\n"
        execute = {"command": ["pwd"]}
        ran = guest.api.ok("POST", f"/api/sandboxes/{guest.id}/execute", execute)
        assert ran["stdout"] == "/srv/work\n"
        container = guest.api.ok("GET", f"/api/sandboxes/{guest.id}")
        assert container["workspace_path"] == "/srv/work"
