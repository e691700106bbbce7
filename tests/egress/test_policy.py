"""A policy is set when a sandbox is made and changed while it runs; what is denied says so, inside and outside."""

import json
import threading

import httpx
import pytest

from conftest import only
from waiting import wait_for

pytestmark = pytest.mark.usefixtures("nothing_escapes")


def reaches(guest, site, port=None):
    """Whether a request by name gets through."""
    return guest.curl(f"http://{site.name}:{port or site.http_port}/echo")["exit_code"] == 0


# --- how it is said


SHUT = {
    "E2B's words": {"network": {"allowOut": ["good.test"], "denyOut": ["0.0.0.0/0"]}},
    "our words": {"network": {"allow_out": ["good.test"], "allow_internet_access": False}},
    "one word beside it": {"network": {"allow_out": ["good.test"]}, "allow_internet_access": False},
    "a star": {"network": {"allow_out": ["good.test"], "deny_out": ["*"]}},
    "the other family": {"network": {"allow_out": ["good.test"], "deny_out": ["::/0"]}},
}


@pytest.mark.parametrize("how", SHUT)
def test_policies_that_allow_only_one_name(world, make, how):
    guest = make(**SHUT[how])
    assert reaches(guest, world.good)
    assert not reaches(guest, world.other)
    guest.denied("not_allowed", name="other.test")


def test_without_internet_nothing_is_reached(world, make):
    guest = make(allow_internet_access=False)
    assert not reaches(guest, world.good)
    assert guest.policy()["network"]["allow_internet_access"] is False


def test_an_entry_may_name_a_port(world, make):
    guest = make(network=only(f"good.test:{world.good.http_port}"))
    assert reaches(guest, world.good)
    assert guest.curl(f"{world.good.https}/echo")["exit_code"] != 0
    flow = guest.flow(verdict="denied", name="good.test", port=world.good.https_port)
    assert flow["reason"]


def test_a_star_stands_for_the_names_below(world, make):
    guest = make(network=only("*.good.test"))
    world.names.set("a.good.test", world.good.address)
    world.names.set("b.a.good.test", world.good.address)
    for name in ("a.good.test", "b.a.good.test", "A.GOOD.test."):
        assert guest.curl(f"http://{name}:{world.good.http_port}/echo")["exit_code"] == 0, name
    assert not reaches(guest, world.good)
    assert guest.curl(f"http://a.good.test.evil.test:{world.good.http_port}/echo")["exit_code"] != 0


def test_an_address_may_be_allowed_without_a_name(world, make):
    guest = make(network=only(f"{world.own_address}:{world.near_port.port}"))
    assert guest.probe("connect", world.own_address, world.near_port.port)["outcome"] == "answered"
    assert guest.probe("connect", world.own_address, world.evil_port.port)["outcome"] != "answered"


def test_denied_entries_count_while_the_rest_is_open(world, make):
    guest = make(network={"deny_out": ["other.test", f"{world.api.address}/32"]})
    assert reaches(guest, world.good)
    assert not reaches(guest, world.other)
    guest.denied("denied_by_policy", name="other.test")
    # By name, too: what the name resolves to is denied.
    assert not reaches(guest, world.api)
    guest.denied("denied_by_policy", world.api.address, name="api.test")


MISTAKES = [
    {"allow_out": ["not a host"]}, {"allow_out": "good.test"}, {"deny_out": ["10.0.0.0/99"]}, {"allow_out": ["a.test:99999"]},
    {"unheard_of": 1}, {"rules": {"api.test": [{"transform": {"headers": {"Bad Name": "x"}}}]}},
    {"rules": {"api.test": [{"transform": {"headers": {"X": "a\r\nb"}}}]}}, {"rules": {"*": []}}, {"allow_internet_access": "maybe"},
]  # fmt: skip


@pytest.mark.parametrize("policy", MISTAKES, ids=json.dumps)
def test_a_policy_that_makes_no_sense_is_refused_and_changes_nothing(wide, policy):
    before = wide.policy()
    reply = wide.api.request("PUT", f"/sandboxes/{wide.id}/network", json=policy)
    assert reply.status_code in (400, 422), reply.text
    assert reply.json()["detail"]
    assert wide.policy() == before
    assert wide.api.post("/sandboxes/create", {"network": policy}).status_code in (400, 422)


# --- changed while it runs


@pytest.mark.quick
def test_one_call_allows_and_one_denies_at_once(world, make):
    guest = make(network=only("good.test"))
    assert not reaches(guest, world.other)
    guest.allow("other.test")
    assert reaches(guest, world.other)
    guest.deny("other.test")
    assert not reaches(guest, world.other)
    assert reaches(guest, world.good)


def test_a_whole_policy_is_replaced(world, make):
    guest = make()
    assert reaches(guest, world.good)
    guest.set_policy(**only("other.test"))
    assert not reaches(guest, world.good)
    assert reaches(guest, world.other)
    assert guest.policy()["network"]["allow_out"] == ["other.test"]


def drip(guest, world, port, scheme="http"):
    """Starts a download without end in the background; gives its process id when bytes have come."""
    url = f"{scheme}://good.test:{port}/drip"
    command = f"curl -sS --cacert /tmp/authority.pem -o /tmp/drip {url}; echo $? > /tmp/drip-ended"
    guest.output("rm -f /tmp/drip /tmp/drip-ended")
    guest.run(command, background=True)
    wait_for(lambda: guest.run("test -s /tmp/drip")["exit_code"] == 0, "bytes have come")


def ended(guest):
    """The exit code of the download, once it has ended."""
    wait_for(lambda: guest.run("test -s /tmp/drip-ended")["exit_code"] == 0, "the download ends inside")
    return int(guest.output("cat /tmp/drip-ended"))


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_open_download_is_cut_when_its_target_becomes_denied(world, make, scheme):
    guest = make()
    drip(guest, world, getattr(world.good, f"{scheme}_port"), scheme)
    guest.deny("good.test")
    assert ended(guest) != 0
    wait_for(lambda: world.good.dripping == 0, "the site sees its end as well")
    assert guest.flow(name="good.test", port=getattr(world.good, f"{scheme}_port"), protocol="tcp")["received_bytes"] > 0


def test_an_open_download_to_what_stays_allowed_goes_on(world, make):
    guest = make()
    drip(guest, world, world.good.http_port)
    guest.deny("other.test")
    guest.set_policy(**only("good.test"))
    size = int(guest.output("stat -c %s /tmp/drip"))
    wait_for(lambda: int(guest.output("stat -c %s /tmp/drip")) > size, "it goes on")
    assert guest.run("test -e /tmp/drip-ended")["exit_code"] != 0


def test_a_download_ends_with_its_sandbox(world, make):
    guest = make()
    drip(guest, world, world.good.http_port)
    guest.remove()
    wait_for(lambda: world.good.dripping == 0, "the site sees its end")


def test_a_policy_survives_pause_and_stop(world, make):
    guest = make(network=only("good.test"))
    guest.api.pause(guest.id)
    assert reaches(guest, world.good)
    assert not reaches(guest, world.other)
    assert guest.policy()["network"]["allow_out"] == ["good.test"]


def test_a_policy_can_be_changed_while_it_is_paused(world, make):
    guest = make(network=only("good.test"))
    guest.api.pause(guest.id)
    guest.allow("other.test")
    assert reaches(guest, world.other)


def test_two_sandboxes_have_two_policies(world, make):
    one, two = make(network=only("good.test")), make(network=only("other.test"))
    assert reaches(one, world.good) and not reaches(one, world.other)
    assert reaches(two, world.other) and not reaches(two, world.good)


# --- what is told


@pytest.mark.quick
def test_a_denied_name_says_so_inside_at_once(shut):
    ran = shut.curl("http://denied.evil.test/")
    assert ran["exit_code"] == 6, ran["output"]
    assert "denied.evil.test" in ran["output"]


def test_a_denied_address_ends_the_connection_at_once(shut):
    assert shut.curl("http://203.0.113.66:8445/")["exit_code"] in (7, 35, 52, 56)


def test_the_reason_is_in_the_sandboxs_log_and_events(shut):
    name = "told.evil.test"
    shut.curl(f"http://{name}/")
    reason = shut.denied("not_allowed", name=name)["reason"]
    assert name in reason
    logs = lambda: json.dumps(shut.api.ok("GET", f"/sandboxes/{shut.id}/logs"), ensure_ascii=False)  # noqa: E731
    wait_for(lambda: reason in logs(), lambda: f"{reason!r} in {logs()[-2000:]}")
    wait_for(lambda: any(name in json.dumps(event) for event in shut.api.events(shut.id, "flow_denied")), "an event tells")


def test_denials_come_as_they_happen(world, make):
    """Somebody who follows the flows hears of a denial without asking again."""
    guest, received = make(network=only("good.test")), []
    has_begun = threading.Event()

    def follow():
        url = f"{guest.api.url}/sandboxes/{guest.id}/flows"
        options = {"params": {"follow": "true", "verdict": "denied"}, "timeout": 120, "trust_env": False}
        with httpx.stream("GET", url, **options) as reply:
            has_begun.set()
            for line in reply.iter_lines():
                if line.startswith("data:"):
                    received.append(json.loads(line[5:]))
                    if received[-1].get("name") == "followed.evil.test":
                        return

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    assert has_begun.wait(90)
    guest.curl("http://followed.evil.test/")
    thread.join(90)
    assert not thread.is_alive(), received
    assert received[-1]["verdict"] == "denied" and received[-1]["reason"]


def test_attempts_alike_are_counted_together(shut):
    """A program that tries again and again does not flood the record."""
    # Many at a time: attempts are summarised together when they come within a few seconds, however busy the machine is.
    script = (
        "import socket, concurrent.futures as futures\n"
        "def ask(_):\n"
        "    try: socket.getaddrinfo('again.evil.test', 80)\n"
        "    except OSError: pass\n"
        "with futures.ThreadPoolExecutor(20) as pool: list(pool.map(ask, range(300)))\n"
    )
    shut.output(["python3", "-c", script], env={"RES_OPTIONS": "attempts:1"})

    def denied_counts():
        return [flow["count"] for flow in shut.flows(verdict="denied") if flow["name"] == "again.evil.test"]

    wait_for(lambda: sum(denied_counts()) >= 300, lambda: f"300 look-ups are on record: {denied_counts()}")
    assert len(denied_counts()) < 100
