"""Secrets are used by sandboxes that never see them."""

import base64
import json
import secrets
from pathlib import Path

import httpx
import pytest

import traces
from conftest import only
from guest import Guest
from server import Server
from waiting import wait_for

_HUNTER = Path(__file__).with_name("hunter.py")


class Secret:
    """A secret kept by the server, with a value nobody else has."""

    def __init__(self, api, name, *hosts, **more):
        self.api, self.name = api, name
        self.value = f"value-{secrets.token_hex(16)}"
        body = {"value": self.value, "hosts": hosts, "is_shared": True, **more}
        self.outcome = api.ok("PUT", f"/secrets/{name}", body)
        self.placeholder = self.outcome["placeholder"]

    def forms(self, user="git"):
        """The value as it may stand somewhere: as it is, and inside Basic credentials."""
        return [self.value, base64.b64encode(f"{user}:{self.value}".encode()).decode()]

    def delete(self):
        return self.api.ok("DELETE", f"/secrets/{self.name}")


@pytest.fixture
def secret(api):
    """Makes secrets that are gone after the test."""
    created = []

    def make(name, *hosts, **more):
        created.append(Secret(api, name, *hosts, **more))
        return created[-1]

    yield make
    for one in created:
        api.delete(f"/secrets/{one.name}")


@pytest.fixture
def key(secret):
    return secret("key", "api.test")


@pytest.fixture
def user(key, make):
    """A sandbox that has the secret `key` as KEY."""
    return make(secrets={"KEY": "key"})


def ask(guest, url, header='"Authorization: Bearer $KEY"', more=""):
    """`curl` as people write it, with the variable in a header and nothing said about whom to trust."""
    return guest.run(f"curl --silent --show-error --max-time 120 -H {header} {more} {url}")


def seen_by(site, path):
    return site.requests_for(path)[-1].headers.get("authorization")


# --- where it goes


@pytest.mark.quick
def test_it_arrives_at_the_host_it_is_bound_to(world, user, key):
    ran = ask(user, f"{world.api.https}/arrives")
    assert ran["exit_code"] == 0, ran["output"]
    assert seen_by(world.api, "/arrives") == f"Bearer {key.value}"
    assert user.flow(name="api.test", verdict="allowed", port=world.api.https_port)["received_bytes"] > 0


@pytest.mark.parametrize("header", ['"X-Api-Key: $KEY"', '"Cookie: a=b; key=$KEY; c=d"', '"X-Two: $KEY and $KEY"'])
def test_it_arrives_in_any_header(world, user, key, header):
    ran = ask(user, f"{world.api.https}/any-header", header)
    assert ran["exit_code"] == 0, ran["output"]
    headers = world.api.requests_for("/any-header")[-1].headers
    assert any(key.value in value for value in headers.values())
    assert not any(key.placeholder in value for value in headers.values())


CLIENTS = {
    "curl": "curl -sS -H \"Authorization: Bearer $KEY\" {url}",
    "python": (
        "python3 -c 'import os, urllib.request as u; "
        'u.urlopen(u.Request("{url}", headers={{"Authorization": "Bearer " + os.environ["KEY"]}})).read()\''
    ),
    "node": (
        "node -e 'require(\"https\").get(\"{url}\", {{headers: {{Authorization: \"Bearer \" + process.env.KEY}}}}, "
        "answer => answer.resume()).on(\"error\", error => {{ console.error(error); process.exit(1) }})'"
    ),
    "git": "git -c http.extraHeader=\"Authorization: Bearer $KEY\" ls-remote {url}/git/small.git",
}  # fmt: skip


@pytest.mark.parametrize("client", CLIENTS)
def test_common_clients_trust_the_gateway_without_configuration(world, user, key, client):
    before = len(world.api.requests)
    user.output(CLIENTS[client].format(url=f"{world.api.https}"))
    seen = [request.headers.get("authorization") for request in world.api.requests[before:]]
    assert seen and set(seen) == {f"Bearer {key.value}"}


def test_it_does_not_go_to_another_host(world, user, key):
    ran = user.curl(f"{world.good.https}/not-bound", "--header", f"Authorization: Bearer {key.placeholder}")
    assert ran["exit_code"] == 0, ran["output"]
    assert seen_by(world.good, "/not-bound") == f"Bearer {key.placeholder}"


def test_it_does_not_go_without_tls(world, user, key):
    ran = ask(user, f"{world.api.http}/plain")
    assert ran["exit_code"] == 0, ran["output"]
    assert seen_by(world.api, "/plain") == f"Bearer {key.placeholder}"


def test_it_goes_without_tls_where_its_owner_says_so(world, secret, make):
    plain = secret("plain", "http://api.test")
    ran = ask(make(secrets={"KEY": "plain"}), f"{world.api.http}/plain-allowed")
    assert ran["exit_code"] == 0, ran["output"]
    assert seen_by(world.api, "/plain-allowed") == f"Bearer {plain.value}"


def test_it_does_not_go_to_another_port_than_its_own(world, secret, make):
    narrow = secret("narrow", "api.test:443")
    guest = make(secrets={"KEY": "narrow"})
    ran = guest.curl(f"{world.api.https}/port", "--header", f"Authorization: Bearer {narrow.placeholder}")
    assert ran["exit_code"] == 0, ran["output"]
    assert seen_by(world.api, "/port") == f"Bearer {narrow.placeholder}"


def test_it_does_not_go_in_the_path_or_the_body(world, user, key):
    """Where a site may well show it to others: only headers are changed."""
    user.output(f'curl -sS -d "$KEY" "{world.api.https}/body?key=$KEY"')
    assert key.value not in world.api.requests_for("/body")[-1].path


def test_a_sandbox_that_was_not_given_it_cannot_use_it(world, key, make):
    guest = make()
    ran = guest.curl(f"{world.api.https}/stranger", "--header", f"Authorization: Bearer {key.placeholder}")
    assert ran["exit_code"] == 0, ran["output"]
    assert seen_by(world.api, "/stranger") == f"Bearer {key.placeholder}"


def test_it_does_not_go_to_a_site_that_is_not_the_bound_host(world, user, key):
    """The gateway asks the site for its certificate: a host that takes over the name gets nothing."""
    world.names.set("api.test", world.other.address)
    try:
        before = len(world.other.requests)
        ran = ask(user, f"{world.api.https}/taken-over", more="--write-out '%{http_code}'")
        assert ran["output"].endswith("502") and "certificate" in ran["output"], ran["output"]
        assert world.other.requests[before:] == []
        user.flow("certificate", name="api.test")
    finally:
        world.names.set("api.test", world.api.address)


def test_binding_opens_nothing(world, key, make):
    """The policy decides where a sandbox may go, whatever secrets it has."""
    guest = make(secrets={"KEY": "key"}, network=only("good.test"))
    assert ask(guest, f"{world.api.https}/bound-but-denied")["exit_code"] != 0
    guest.denied("not_allowed", name="api.test")


def test_a_request_for_another_host_inside_tls_gets_nothing(world, user, key):
    """The connection is for the bound host; what is said on it must be as well."""
    before = len(world.api.requests)
    ran = ask(user, f"{world.api.https}/other-inside", more="-H 'Host: good.test' --write-out '%{http_code}'")
    assert not ran["output"].endswith("200"), ran["output"]
    assert world.api.requests[before:] == []


# --- what becomes of it later


def test_a_new_value_is_used_at_once(world, user, key, api):
    ask(user, f"{world.api.https}/first")
    new = f"value-{secrets.token_hex(16)}"
    body = {"value": new, "hosts": ["api.test"], "is_shared": True, "placeholder": key.placeholder}
    api.ok("PUT", "/secrets/key", body)
    ask(user, f"{world.api.https}/second")
    assert seen_by(world.api, "/second") == f"Bearer {new}"


def test_after_its_deletion_it_goes_nowhere(world, user, key):
    assert ask(user, f"{world.api.https}/before-deletion")["exit_code"] == 0
    key.delete()
    user.curl(f"{world.api.https}/after-deletion", "--header", f"Authorization: Bearer {key.placeholder}")
    for request in world.api.requests_for("/after-deletion"):
        assert key.value not in request.headers["authorization"]


# --- git


def test_git_clones_with_the_placeholder_as_password(world, secret, make):
    """Basic credentials are encoded: the placeholder is looked for inside them."""
    login = secret("login", "api.test")
    world.api.password = login.value
    guest = make(secrets={"PASSWORD": "login"})
    url = world.api.https.replace("https://", 'https://git:"$PASSWORD"@')
    guest.output(f"git clone --quiet {url}/private/git/small.git /tmp/private")
    assert guest.output(["cat", "/tmp/private/hello"]) == "from the repository\n"
    refused = make()
    ran = refused.run(f"git clone --quiet {url}/private/git/small.git /tmp/private", env={"PASSWORD": login.placeholder})
    assert ran["exit_code"] != 0


# --- headers that a policy sets, as E2B's clients write them


@pytest.fixture
def ruled(make):
    """A sandbox whose policy sets a header for api.test, and the header's value."""
    value = f"value-{secrets.token_hex(16)}"
    rules = {"api.test": [{"transform": {"headers": {"X-Team-Key": value}}}]}
    return make(network={"allow_out": ["api.test", "good.test"], "deny_out": ["0.0.0.0/0"], "rules": rules}), value


def test_a_rule_sets_a_header_whatever_the_program_sends(world, ruled):
    guest, value = ruled
    guest.output(f"curl -sS -H 'X-Team-Key: mine' {world.api.https}/ruled")
    assert world.api.requests_for("/ruled")[-1].headers["x-team-key"] == value
    guest.curl(f"{world.good.https}/not-ruled")
    assert "x-team-key" not in world.good.requests_for("/not-ruled")[-1].headers


def test_a_rule_sets_nothing_without_tls(world, ruled):
    """What a rule sets may be a secret, and nobody said that it may be read on the way."""
    guest, value = ruled
    guest.output(f"curl -sS {world.api.http}/ruled-plain")
    seen = world.api.requests_for("/ruled-plain")[-1].headers
    assert "x-team-key" not in seen and value not in str(seen)


def test_a_rule_for_plain_http_is_followed_without_tls(world, make):
    value = f"value-{secrets.token_hex(16)}"
    rules = {"http://api.test": [{"transform": {"headers": {"X-Team-Key": value}}}]}
    guest = make(network={"allow_out": ["api.test"], "deny_out": ["0.0.0.0/0"], "rules": rules})
    for url in (world.api.http, world.api.https):
        guest.output(f"curl -sS -H 'X-Team-Key: mine' {url}/ruled-both")
        assert world.api.requests_for("/ruled-both")[-1].headers["x-team-key"] == value


def test_a_rule_for_another_port_sets_nothing(world, make):
    rules = {"api.test:1": [{"transform": {"headers": {"X-Team-Key": "for-another-port"}}}]}
    guest = make(network={"allow_out": ["api.test"], "deny_out": ["0.0.0.0/0"], "rules": rules})
    guest.curl(f"{world.api.https}/ruled-elsewhere")
    assert "x-team-key" not in world.api.requests_for("/ruled-elsewhere")[-1].headers


def test_a_rules_value_is_never_returned(server, world, ruled):
    guest, value = ruled
    guest.output(f"curl -sS {world.api.https}/ruled")
    displayed = json.dumps([guest.policy(), guest.api.info(guest.id), guest.api.all(), guest.api.events(guest.id)])
    assert "X-Team-Key" in displayed and value not in displayed
    assert hunt(guest, [value])["found"] == []
    assert traces.in_data_dir(server.data, value) == []


# --- nobody inside can read it


def hunt(guest, needles):
    guest.api.write(guest.id, "/tmp/hunter.py", _HUNTER.read_text())
    guest.api.write(guest.id, "/tmp/needles", "\n".join(needle[::-1] for needle in needles))
    return json.loads(guest.output("python3 /tmp/hunter.py < /tmp/needles", user="root", timeout=290))


def test_the_hunter_finds_what_is_there(make):
    """Else the next test would mean nothing."""
    text = f"there-{secrets.token_hex(16)}"
    guest = make()
    guest.run(["sh", "-c", "exec sleep 1000", text[::-1]], env={"PLANTED": text}, background=True)
    guest.api.write(guest.id, "/home/user/planted", text)
    outcome = hunt(guest, [text])
    assert "/home/user/planted" in outcome["found"]
    assert any(path.endswith("/environ") for path in outcome["found"])
    assert any(path.endswith("/mem") for path in outcome["found"])


def test_nothing_inside_holds_it_after_it_was_used(server, world, secret, make):
    key, login = secret("used", "api.test"), secret("used-login", "api.test")
    world.api.password = login.value
    guest = make(secrets={"KEY": "used", "PASSWORD": "used-login"})
    assert guest.output("printenv KEY").strip() == key.placeholder
    assert ask(guest, f"{world.api.https}/used")["exit_code"] == 0
    url = world.api.https.replace("https://", 'https://git:"$PASSWORD"@')
    guest.output(f"git clone --quiet {url}/private/git/small.git /tmp/private")
    needles = [*key.forms(), *login.forms()]
    outcome = hunt(guest, needles)
    assert outcome["found"] == []
    assert outcome["files"] > 100, outcome
    # From outside nothing is hidden, the first process's memory least of all.
    assert traces.in_processes(traces.of_sandbox(server, guest.api, guest.id), *needles) == []


@pytest.mark.parametrize("how", ["--include", "--include --compressed", "--include --http1.1"])
def test_an_answer_that_repeats_it_does_not_bring_it_inside(world, user, key, how):
    """Sites that show what they were sent are common."""
    ran = ask(user, f"{world.api.https}/mirror", more=how)
    assert ran["exit_code"] == 0, ran["output"]
    assert seen_by(world.api, "/mirror") == f"Bearer {key.value}"
    assert "authorization" in ran["output"] and "X-Seen" in ran["output"].title(), ran["output"]
    assert key.value not in ran["output"]


# --- nor on the host


def test_the_host_seals_the_value_and_never_returns_it(server, world, api, user, key):
    assert ask(user, f"{world.api.https}/kept")["exit_code"] == 0
    user.flow(name="api.test", verdict="allowed")
    assert traces.in_data_dir(server.data, *key.forms()) == []
    outcome = [key.outcome, api.ok("GET", "/secrets"), user.policy(), api.info(user.id), api.all(), user.flows(), api.events(user.id)]
    outcome += [api.get(path).text for path in ("/metrics", f"/sandboxes/{user.id}/logs", "/events", "/audit")]
    assert key.value not in json.dumps(outcome)
    assert key.value not in server.log.read_text(errors="replace")


def test_a_secret_cannot_be_read_back(api, key):
    assert api.get("/secrets/key").status_code in (404, 405)


def test_it_survives_a_restart_of_the_server(world):
    with Server("--ready", "0", **world.settings) as own:
        api = own.api()
        stored = Secret(api, "kept", "api.test")
        with Guest(api, world, secrets={"KEY": "kept"}) as guest:
            own.kill()
            own.start()
            # The server answers before it has reached every sandbox again.
            wait_for(lambda: ask(guest, f"{world.api.https}/restarted")["exit_code"] == 0, "the site is reached again")
        assert seen_by(world.api, "/restarted") == f"Bearer {stored.value}"
        assert traces.in_data_dir(own.data, *stored.forms()) == []
        api.close()


# --- whose it is


def test_mistakes_are_refused_with_what_to_do(api, make):
    for body in ({"value": "x", "hosts": []}, {"value": "", "hosts": ["a.test"]}, {"value": "x", "hosts": ["no host!"]}):
        reply = api.http.put("/secrets/wrong", json=body)
        assert reply.status_code in (400, 422), reply.text
        assert reply.json()["detail"]
    reply = httpx.post(f"{api.url}/sandboxes/create", json={"secrets": {"X": "no-such-secret"}}, timeout=60, trust_env=False)
    assert reply.status_code in (400, 404, 422) and "no-such-secret" in reply.text
