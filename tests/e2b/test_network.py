"""What sandboxes may reach, and who may reach their ports."""

import json

import e2b
import pytest
from e2b import ALL_TRAFFIC

from guest import PATIENT
from public_ports import PORT, TOKEN, get, start_site
from waiting import wait_for


def reaches(sandbox, site):
    """Whether a request by name gets through."""
    done = sandbox.commands.run(f"curl -sS -m 200 -o /dev/null {site.http}/echo; echo $?", envs=PATIENT)
    return done.stdout == "0\n"


# --- egress


def test_only_what_is_allowed_is_reached(world, make):
    sandbox = make(network={"allow_out": ["good.test"], "deny_out": [ALL_TRAFFIC]})
    assert (reaches(sandbox, world.good), reaches(sandbox, world.other)) == (True, False)
    network = sandbox.get_info().network
    assert (network["allow_out"], network["deny_out"]) == (["good.test"], [ALL_TRAFFIC])


def test_without_internet_nothing_is_reached(world, make):
    sandbox = make(allow_internet_access=False)
    assert reaches(sandbox, world.good) is False
    assert sandbox.get_info().allow_internet_access is False


def test_nothing_said_means_the_internet(world, fresh_sandbox):
    assert reaches(fresh_sandbox, world.good) is True


def test_what_is_denied_by_address_is_not_reached(world, make):
    sandbox = make(network={"deny_out": [world.other.address]})
    assert (reaches(sandbox, world.good), reaches(sandbox, world.other)) == (True, False)


def test_update_replaces_everything_while_it_runs(half, world, make):
    sandbox = make(network={"allow_out": ["good.test"], "deny_out": [ALL_TRAFFIC]})
    sandbox.update_network({"allow_out": ["other.test"], "deny_out": lambda ctx: [ctx.all_traffic]})
    assert (reaches(sandbox, world.good), reaches(sandbox, world.other)) == (False, True)
    half.Sandbox.update_network(sandbox.sandbox_id, {"allow_internet_access": False})
    assert (reaches(sandbox, world.good), reaches(sandbox, world.other)) == (False, False)
    sandbox.update_network({})
    assert (reaches(sandbox, world.good), reaches(sandbox, world.other)) == (True, True)


def test_rules_put_headers_into_requests(world, make, mark):
    rules = {"api.test": [{"transform": {"headers": {"X-Injected": mark}}}]}
    sandbox = make(
        network={"rules": rules, "allow_out": lambda ctx: list(ctx.rules), "deny_out": lambda ctx: [ctx.all_traffic]}
    )
    assert sandbox.commands.run(f"curl -sSk {world.api.https}/echo?{mark}; env", envs=PATIENT).stdout.count(mark) <= 1
    (request,) = [one for one in world.api.requests if one.path.endswith(f"?{mark}")]
    assert request.headers["x-injected"] == mark
    displayed = sandbox.get_info().network["rules"]
    assert list(displayed) == ["api.test"] and mark not in json.dumps(displayed), "values are not shown"
    assert reaches(sandbox, world.good) is False
    repeated = {"api.test": [{"transform": {"headers": {"X-Injected": "again"}}}]}
    sandbox.update_network({"rules": repeated, "allow_out": ["api.test"]})
    sandbox.commands.run(f"curl -sSk -o /dev/null '{world.api.https}/echo?second-{mark}'", envs=PATIENT)
    wait_for(lambda: any(f"second-{mark}" in one.path for one in world.api.requests), "the site is asked")
    assert [one.headers["x-injected"] for one in world.api.requests if f"second-{mark}" in one.path] == ["again"]


def test_policies_that_cannot_be_are_refused(half, fresh_sandbox):
    for network in ({"deny_out": ["a name.test"]}, {"allow_out": ["300.1.2.3/99"]}):
        with pytest.raises(e2b.SandboxException):
            half.Sandbox.create(network=network)
        with pytest.raises(e2b.SandboxException):
            fresh_sandbox.update_network(network)


def test_what_this_server_does_not_offer_is_refused_in_words(half):
    with pytest.raises(e2b.SandboxException, match="egressProxy"):
        half.Sandbox.create(network={"egress_proxy": {"address": "proxy.example.com:1080"}})


@pytest.mark.needs("https_ports")
def test_tls_inside_is_refused_in_words(half):
    with pytest.raises(e2b.SandboxException, match="httpsPorts"):
        half.Sandbox.create(network={"https_ports": [3000]})


# --- ingress


def test_host_of_a_port_opens_it(server, fresh_sandbox):
    start_site(fresh_sandbox)
    reply = get(server, fresh_sandbox, "/some/path?x=1")
    assert (reply.status_code, reply.json()["path"]) == (200, "/some/path?x=1")
    assert fresh_sandbox.traffic_access_token is None


def test_closed_port_and_dead_sandbox_are_said_word_for_word(server, fresh_sandbox):
    closed = get(server, fresh_sandbox, port=3999)
    assert closed.status_code == 502
    assert closed.json()["message"] == "The sandbox is running but port is not open"
    assert closed.json()["port"] == 3999
    fresh_sandbox.kill()
    dead = get(server, fresh_sandbox)
    assert (dead.status_code, dead.json()["message"], dead.json()["code"]) == (502, "The sandbox was not found", 502)
    assert dead.json()["sandboxId"] == fresh_sandbox.sandbox_id


def test_private_ports_need_the_token(server, half, make):
    sandbox = make(network={"allow_public_traffic": False})
    start_site(sandbox)
    assert sandbox.traffic_access_token
    assert get(server, sandbox).status_code == 403
    assert get(server, sandbox, **{TOKEN: "wrong"}).status_code == 403
    reply = get(server, sandbox, **{TOKEN: sandbox.traffic_access_token})
    assert reply.status_code == 200
    assert sandbox.traffic_access_token not in reply.text, "the site inside does not learn it"
    assert half.Sandbox.connect(sandbox.sandbox_id).traffic_access_token == sandbox.traffic_access_token
    assert sandbox.commands.run("echo commands need it not").exit_code == 0
    assert sandbox.get_info().network["allow_public_traffic"] is False


def test_host_that_servers_inside_see_is_masked(server, make):
    sandbox = make(network={"mask_request_host": "${PORT}-app.example.com"})
    start_site(sandbox)
    headers = get(server, sandbox).json()["headers"]
    # In title case: some programs know no other.
    assert headers["Host"] == f"{PORT}-app.example.com"
    assert sandbox.get_info().network["mask_request_host"] == "${PORT}-app.example.com"


def test_request_to_a_port_wakes_what_was_made_so(server, make):
    sandbox = make(lifecycle={"on_timeout": "pause", "auto_resume": True})
    start_site(sandbox)
    sandbox.pause()
    assert get(server, sandbox).status_code == 200
    assert sandbox.is_running() is True


def test_request_to_a_port_does_not_wake_the_others(server, half, fresh_sandbox):
    start_site(fresh_sandbox)
    fresh_sandbox.pause()
    assert get(server, fresh_sandbox).status_code == 502
    assert half.Sandbox.get_info(fresh_sandbox.sandbox_id).state == e2b.SandboxState.PAUSED
