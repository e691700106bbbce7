"""Ingress through the agent, without a port of the host; egress through the gateway, which judges and records."""

import hashlib

import pytest

from guest import Guest
from previews import Preview, start_site
from waiting import wait_for


@pytest.mark.parametrize("form", Preview.FORMS)
def test_site_inside_is_seen_from_outside(server, api, sandbox, behind, form):
    start_site(api, sandbox)
    preview = Preview(server, sandbox, form)
    reply = preview.get("/some/path?x=1")
    assert (reply.status_code, reply.json()["path"]) == (200, "/some/path?x=1")
    with preview.websocket() as socket:
        socket.send("through the agent")
        assert socket.recv() == "through the agent"
    assert not any(behind.container(sandbox)["NetworkSettings"]["Ports"].values())


def test_closed_port_is_said(server, sandbox):
    assert Preview(server, sandbox, "path", port=3999).get().status_code == 502


def test_large_answer_comes_whole(server, api, sandbox):
    start_site(api, sandbox)
    api.run(sandbox, "mkdir -p /tmp/www && head -c 20000000 /dev/urandom > /tmp/www/large")
    api.run(sandbox, "cd /tmp/www && exec python3 -m http.server 3001", background=True)
    digest = api.run(sandbox, "sha256sum < /tmp/www/large")["output"].split()[0]
    preview = Preview(server, sandbox, "path", port=3001)
    wait_for(lambda: preview.get("/").status_code == 200, "it listens")
    assert hashlib.sha256(preview.get("/large").content).hexdigest() == digest


@pytest.fixture
def guest(api, world):
    """Makes sandboxes with a policy, gone after the test."""
    created = []

    def guest(**body):
        created.append(Guest(api, world, **body))
        return created[-1]

    yield guest
    for one in created:
        one.remove()


def reaches(guest, site):
    return guest.curl(f"{site.http}/echo")["exit_code"] == 0


def reaches_only_good(guest, world):
    """A name is asked for a few times and then given up, which on a busy machine is soon; what is denied is so all the time."""
    wait_for(lambda: reaches(guest, world.good), "what is allowed is reached")
    assert not reaches(guest, world.other)


def test_only_what_is_allowed_is_reached_and_both_are_recorded(world, guest):
    shut = guest(network={"allow_out": ["good.test"], "deny_out": ["0.0.0.0/0"]})
    reaches_only_good(shut, world)
    shut.denied("not_allowed", name="other.test")
    assert shut.flow(verdict="allowed", name="good.test")
    shut.allow("other.test")
    wait_for(lambda: reaches(shut, world.other), "what is allowed now is reached")
    shut.deny("good.test")
    assert not reaches(shut, world.good)


def test_tls_is_carried_untouched(world, guest):
    one = guest(network={"allow_out": ["good.test"], "deny_out": ["0.0.0.0/0"]})
    wait_for(lambda: one.curl(f"{world.good.https}/echo")["exit_code"] == 0, "it is reached")


def test_nothing_of_this_host_is_reached(world, guest):
    before = len(world.escaped())
    wide = guest()
    for target in (f"inner.test:{world.ports[0]}", f"127.0.0.1:{world.ports[0]}", f"{world.own_address}:1", "169.254.169.254:80"):
        assert wide.curl(f"http://{target}/")["exit_code"] != 0, target
    assert world.escaped()[before:] == []


def test_the_gateway_inserts_the_secret(api, world, guest):
    stored = api.ok("PUT", "/secrets/on-the-way", {"value": "s3cret-on-the-way", "hosts": ["api.test"]})
    one = guest(user_id=stored["owner"], secrets={"KEY": stored["name"]})
    assert one.run("echo $KEY")["output"] == stored["placeholder"] + "\n"
    fetch = f"curl -sSk -H \"X-Key: $KEY\" {world.api.https}/echo?on-the-way"
    wait_for(lambda: one.run(fetch)["exit_code"] == 0, "it is reached")
    keys = [request.headers["x-key"] for request in world.api.requests if request.path.endswith("?on-the-way")]
    assert set(keys) == {"s3cret-on-the-way"}
    api.ok("DELETE", "/secrets/on-the-way")


def test_policy_holds_after_pause_stop_and_restart(api, world, guest):
    shut = guest(network={"allow_out": ["good.test"], "deny_out": ["0.0.0.0/0"]})
    for turn in (
        lambda: (api.pause(shut.id), api.ok("POST", f"/sandboxes/{shut.id}/resume")),
        lambda: (api.ok("POST", f"/api/sandboxes/{shut.id}/stop"), api.ok("POST", f"/api/sandboxes/{shut.id}/start")),
    ):
        turn()
        reaches_only_good(shut, world)
