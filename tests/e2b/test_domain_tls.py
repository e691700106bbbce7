"""A domain and TLS: what only exists with real names. The rest of the suite runs in this mode too, with `--domain`."""

import json
import os
import ssl
import subprocess

import httpx
import pytest
from websockets.sync.client import connect

import mode
from public_ports import PORT, TOKEN, start_site
from program import environment, find_program

pytestmark = pytest.mark.domain


@pytest.fixture
def trust(pointed):
    """What a client of one's own has to trust."""
    return ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])


@pytest.fixture
def site(fresh_sandbox):
    start_site(fresh_sandbox)
    return fresh_sandbox


def test_a_domain_and_a_certificate_are_the_whole_switch(half, pointed, server):
    assert set(pointed) == {"E2B_API_KEY", "E2B_DOMAIN", "SSL_CERT_FILE"}
    with half.Sandbox.create() as sandbox:
        assert sandbox.commands.run("echo over tls").stdout == "over tls\n"
        assert sandbox.sandbox_domain == mode.current.domain(server)
        assert sandbox.envd_direct_url == f"https://{sandbox.get_host(49983)}"


def test_command_line_prints_the_switch(server, pointed):
    """`eval "$(sandyard e2b env)"` in a shell."""
    command = [str(find_program()), "--url", server.url, "e2b", "env", "--json"]
    variables = environment(SANDYARD_API_KEY=pointed["E2B_API_KEY"], SANDYARD_CA_CERT=pointed["SSL_CERT_FILE"])
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert {name: printed[name] for name in pointed} == pointed


def test_host_of_a_port_really_opens(site, trust):
    reply = httpx.get(f"https://{site.get_host(PORT)}/path?x=1", verify=trust, timeout=120, trust_env=False)
    assert (reply.status_code, reply.json()["path"]) == (200, "/path?x=1")


def test_certificate_is_checked_by_name(site, trust):
    """It is good for exactly one label below the domain, as certificates are."""
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"https://a.{site.get_host(PORT)}/", verify=trust, timeout=120, trust_env=False)


def test_websocket_opens(site, trust):
    with connect(f"wss://{site.get_host(PORT)}/ws", ssl=trust, open_timeout=120, ping_interval=None, proxy=None) as socket:
        socket.send("said")
        assert socket.recv(timeout=120) == "said"


def test_private_port_takes_the_token_alone(make, trust):
    sandbox = make(network={"allow_public_traffic": False})
    start_site(sandbox)
    url = f"https://{sandbox.get_host(PORT)}/"

    def status(**headers):
        return httpx.get(url, headers=headers, verify=trust, timeout=120, trust_env=False).status_code

    assert (status(), status(**{TOKEN: "wrong"}), status(**{TOKEN: sandbox.traffic_access_token})) == (403, 403, 200)


def test_both_planes_have_their_hosts(sandbox, server, trust, key):
    domain = mode.current.domain(server)
    default = {"verify": trust, "timeout": 120, "trust_env": False}
    entries = httpx.get(f"https://api.{domain}/v2/sandboxes", headers={"X-API-Key": key}, **default)
    assert sandbox.sandbox_id in [one["sandboxID"] for one in entries.json()]
    headers = {"E2b-Sandbox-Id": sandbox.sandbox_id, "E2b-Sandbox-Port": "49983"}
    health = httpx.get(f"https://sandbox.{domain}/health", headers=headers, **default)
    assert health.status_code == 204
    # Without a sandbox's name that host has nothing to say.
    without_sandbox = httpx.get(f"https://sandbox.{domain}/health", **default)
    assert without_sandbox.status_code in (400, 404, 502)
    direct = httpx.get(f"https://{sandbox.get_host(49983)}/health", **default)
    assert direct.status_code == 204


def test_request_to_a_name_wakes_what_was_made_so(make, trust):
    sandbox = make(lifecycle={"on_timeout": "pause", "auto_resume": True})
    start_site(sandbox)
    sandbox.pause()
    assert httpx.get(f"https://{sandbox.get_host(PORT)}/", verify=trust, timeout=120, trust_env=False).status_code == 200


def test_agents_of_no_sandbox_are_not_found(server, trust):
    url = f"https://49983-nosuchsandbox.{mode.current.domain(server)}/health"
    reply = httpx.get(url, verify=trust, timeout=120, trust_env=False)
    assert (reply.status_code, reply.json()["message"]) == (502, "The sandbox was not found")
