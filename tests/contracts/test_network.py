"""What sandboxes may reach and secrets they use without seeing them: all that is told and kept, on a real server.

What gets out and what does not is for `../egress/`.
"""

import secrets

import pytest

from api import describe_reply

ENVELOPED = "/api/v1/agent/sandboxes"
HEADER = {"api.example.com": [{"transform": {"headers": {"X-Key": "s3cret-of-a-rule"}}}]}


def network(api, sandbox):
    return api.ok("GET", f"/sandboxes/{sandbox}/network")["network"]


def put(api, path, body):
    return api.request("PUT", path, json=body)


@pytest.fixture
def secret(api):
    """Keeps a secret that is gone after the test; returns what the server says about it."""
    created = []

    def secret(value, hosts=("api.example.com",), **more):
        created.append(f"test-{secrets.token_hex(4)}")
        return api.ok("PUT", f"/secrets/{created[-1]}", {"value": value, "hosts": list(hosts), **more})

    yield secret
    for name in created:
        reply = api.delete(f"/secrets/{name}")
        assert reply.status_code in (200, 404), describe_reply(reply)


@pytest.mark.quick
def test_a_policy_is_set_changed_and_replaced(api, sandbox):
    assert network(api, sandbox)["allow_internet_access"] is True, "nothing configured, nothing asked for"
    path = f"/sandboxes/{sandbox}/network"
    policy = {"allow_internet_access": False, "allowOut": ["pypi.org", "*.Example.com:443", "203.0.113.0/24"]}
    displayed = api.ok("PUT", path, policy)["network"]
    assert displayed["allow_out"] == ["pypi.org", "*.example.com:443", "203.0.113.0/24"]
    displayed = api.ok("POST", f"{path}/allow", {"targets": ["registry.npmjs.org"]})["network"]
    assert displayed["allow_out"][-1] == "registry.npmjs.org" and displayed["allow_internet_access"] is False
    displayed = api.ok("POST", f"{path}/deny", {"targets": ["pypi.org"]})["network"]
    assert "pypi.org" not in displayed["allow_out"] and displayed["deny_out"] == ["pypi.org"]
    assert displayed == network(api, sandbox) == api.info(sandbox)["network"]
    displayed = api.ok("PUT", path, {})["network"]
    assert (displayed["allow_out"], displayed["deny_out"], displayed["allow_internet_access"]) == ([], [], True)
    assert api.events(sandbox, "network_changed"), "whoever changes it can be found later"


def test_a_sandbox_is_made_with_a_policy_in_either_spelling(api, make):
    for body in (
        {"network": {"allowOut": ["pypi.org"], "denyOut": ["0.0.0.0/0"]}},
        {"network": {"allow_out": ["pypi.org"], "deny_out": ["0.0.0.0/0"]}},
    ):
        displayed = network(api, make(**body))
        assert (displayed["allow_out"], displayed["deny_out"]) == (["pypi.org"], ["0.0.0.0/0"])
    assert network(api, make(allow_internet_access=False))["allow_internet_access"] is False


def test_a_paused_sandbox_is_not_woken_by_a_policy(api, sandbox):
    api.pause(sandbox)
    api.ok("POST", f"/sandboxes/{sandbox}/network/deny", {"targets": ["*:25"]})
    assert network(api, sandbox)["deny_out"] == ["*:25"]
    assert api.status(sandbox) == "paused"


@pytest.mark.parametrize(
    "policy, field",
    [
        ({"allow_out": ["pypi.org", "https://pypi.org/"]}, "allow_out[1]"),
        ({"denyOut": ["10.0.0.0/99"]}, "deny_out[0]"),
        ({"alow_out": []}, "alow_out"),
        ({"allow_internet_access": "no"}, "allow_internet_access"),
        ({"rules": {"*": HEADER["api.example.com"]}}, "rules.*"),
        ({"rules": {"api.example.com": [{"transform": {"headers": {"X-Key": 7}}}]}}, "rules.api.example.com[0].transform.headers.X-Key"),
    ],
)
def test_an_invalid_entry_is_400_and_named(api, shared, policy, field):
    reply = put(api, f"/sandboxes/{shared}/network", policy)
    assert reply.status_code == 400 and reply.json()["field"] == field, describe_reply(reply)
    reply = api.post("/sandboxes/create", {"network": policy})
    assert reply.status_code == 400 and reply.json()["field"] == f"network.{field}", describe_reply(reply)
    for verb in ("allow", "deny"):
        reply = api.post(f"/sandboxes/{shared}/network/{verb}", {"targets": ["pypi.org", "a b"]})
        assert reply.status_code == 400 and reply.json()["field"] == "targets[1]", describe_reply(reply)


def test_values_of_headers_are_kept_and_never_shown(api, server, make):
    sandbox = make(network={"rules": HEADER})
    path = f"/sandboxes/{sandbox}/network"
    displayed = api.ok("GET", path)
    assert displayed["network"]["rules"]["api.example.com"][0]["transform"]["headers"] == {"X-Key": "***"}
    # What is shown may be sent back; a new header without a value of its own may not.
    assert api.ok("PUT", path, displayed["network"]) == displayed
    for host in ("other.example.com", "http://api.example.com", "api.example.com:8443"):
        reply = put(api, path, {"rules": {host: [{"transform": {"headers": {"X-Key": "***"}}}]}})
        assert reply.status_code in (400, 422), describe_reply(reply)
    response = [api.get(f"/sandboxes/{sandbox}/{what}").text for what in ("info", "events", "logs", "network", "flows")]
    assert "s3cret-of-a-rule" not in "".join([*response, api.get("/sandboxes").text, server.log.read_text()])


def test_a_secret_is_a_placeholder_inside(api, server, make, secret):
    value = f"value-{secrets.token_hex(8)}"
    stored = secret(value, hosts=["api.example.com", "*.example.org:8443"])
    assert value not in str(stored) and stored["hosts"] == ["api.example.com", "*.example.org:8443"]
    assert stored in api.ok("GET", "/secrets")["secrets"]
    sandbox = make(user_id=stored["owner"], secrets={"API_KEY": stored["name"]})
    assert api.info(sandbox)["secrets"] == {"API_KEY": stored["name"]}
    assert api.run(sandbox, "printf %s $API_KEY")["output"] == stored["placeholder"]
    # In two parts, for commands are kept in the history.
    halves = f"{value[:10]}''{value[10:]}"
    assert api.run(sandbox, f"env; cat /proc/[0-9]*/environ 2>/dev/null | grep -c {halves}; true")["output"].count(value) == 0
    changed = api.ok("PUT", f"/secrets/{stored['name']}", {"value": f"new-{value}", "hosts": ["api.example.com"]})
    assert changed["placeholder"] == stored["placeholder"] and changed["created_at"] == stored["created_at"]
    assert value not in server.log.read_text()
    # Sealed, so that a copy of the database alone tells nobody.
    files = [path.read_bytes() for path in server.data.path.glob("sandyard.db*")]
    assert files and not any(value.encode() in file for file in files)


@pytest.mark.parametrize(
    "more, status, field",
    [
        ({"hosts": []}, 400, "hosts"),
        ({"hosts": ["api.example.com", "https://api.example.com/"]}, 400, "hosts[1]"),
        ({"hosts": ["*"]}, 400, "hosts[0]"),
        ({"value": "two\nlines"}, 422, "value"),
        ({"placeholder": "short"}, 422, "placeholder"),
    ],
)
def test_an_invalid_secret_is_refused_without_repeating_it(api, more, status, field):
    reply = put(api, "/secrets/nonsense", {"value": "s3cret", "hosts": ["api.example.com"], **more})
    assert reply.status_code == status and reply.json()["field"] == field, describe_reply(reply)
    assert "s3cret" not in reply.text and "two" not in reply.text


def test_secrets_and_networks_of_others_are_not_found(new_user, admin):
    owner, other = new_user(), new_user()
    body = {"value": "s3cret", "hosts": ["api.example.com"]}
    owner.api.ok("PUT", "/secrets/mine", body)
    sandbox = owner.api.create(secrets={"KEY": "mine"})
    assert other.api.ok("GET", "/secrets")["secrets"] == []
    api, path = other.api, f"/sandboxes/{sandbox}"
    replies = [
        api.delete("/secrets/mine"),
        api.get(f"{path}/network"),
        put(api, f"{path}/network", {}),
        api.post(f"{path}/network/allow", {"targets": ["pypi.org"]}),
        api.post(f"{path}/network/deny", {"targets": ["pypi.org"]}),
        api.get(f"{path}/flows"),
        api.get(f"{ENVELOPED}/{sandbox}/network"),
        api.get(f"{ENVELOPED}/{sandbox}/flows"),
    ]
    assert [reply.status_code for reply in replies] == [404] * len(replies), [describe_reply(reply) for reply in replies]
    reply = api.post("/sandboxes/create", {"secrets": {"KEY": "mine"}})
    assert reply.status_code == 422 and reply.json()["field"] == "secrets", describe_reply(reply)
    assert put(api, "/secrets/all", {**body, "is_shared": True}).status_code == 403
    admin.ok("PUT", "/secrets/shared-by-admin", {**body, "is_shared": True})
    assert [one["name"] for one in api.ok("GET", "/secrets")["secrets"]] == ["shared-by-admin"]
    assert api.delete("/secrets/shared-by-admin").status_code == 404
    admin.ok("DELETE", "/secrets/shared-by-admin")
    owner.api.ok("DELETE", "/secrets/mine")


def test_flows_are_a_list_with_a_filter(api, shared):
    for query in ({}, {"verdict": "denied"}, {"after": 0, "limit": 1}):
        flows = api.ok("GET", f"/sandboxes/{shared}/flows", params=query)["flows"]
        assert isinstance(flows, list)
    for query in ({"verdict": "odd"}, {"limit": 0}, {"after": "x"}):
        reply = api.get(f"/sandboxes/{shared}/flows", params=query)
        assert reply.status_code == 422, describe_reply(reply)


def test_the_enveloped_dialect_has_them_too(user):
    sandbox = user.api.create()
    path = f"{ENVELOPED}/{sandbox}"
    reply = user.api.ok("POST", f"{path}/network/deny", {"targets": ["*:25"]})
    assert reply["code"] == 200 and reply["data"]["network"]["deny_out"] == ["*:25"]
    assert user.api.ok("GET", f"{path}/flows")["data"]["flows"] == []
    reply = user.api.post(f"{path}/network/deny", {"targets": ["a b"]})
    assert reply.status_code == 400 and "targets[0]" in reply.json()["msg"], describe_reply(reply)
