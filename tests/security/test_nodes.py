"""Two servers on one PostgreSQL: a user's rights are the same at both, they believe only each other, and no text becomes SQL."""

import secrets
from contextlib import ExitStack

import pytest

from api import answer, describe_reply
from engines import Postgres
from server import Server
from signing import MINUTE_MS, Signer, now_ms
from waiting import wait_for

# Texts that a database, a path or a header might misread. What comes last is 10 kB.
TEXTS = [
    "'",
    "\"';--",
    "x'; DROP TABLE sandboxes; --",
    "' OR '1'='1",
    "' UNION SELECT value FROM meta --",
    "%' OR owner LIKE '%",
    "$1",
    "{}",
    "\\",
    "a\u0000b",
    "\u202e\ud83d\ude00\u0301\ufeff".encode("utf-16", "surrogatepass").decode("utf-16"),
    "x" * 10_000,
]


class Nodes:
    """Two servers with a data directory each, on one database."""

    def __init__(self, stack):
        self.postgres = stack.enter_context(Postgres())
        self.first, self.second = self._server(stack), self._server(stack)
        self.admin_key = self.first.admin_key
        # The admin is made with the database; the harness looks for the key at every server.
        (self.second.data.path / "admin.key").write_text(self.admin_key)

    def _server(self, stack):
        server = Server("--auth", "required", "--database-url", self.postgres.url, "--ready", "0", LIMITS_SANDBOXES_PER_USER=0)
        server.settings["SANDYARD_NODE_URL"] = server.url
        return stack.enter_context(server)


@pytest.fixture(scope="module")
def nodes():
    with ExitStack() as stack:
        yield Nodes(stack)


@pytest.fixture(scope="module")
def admin(nodes):
    api = nodes.first.api(nodes.admin_key)
    yield api
    api.close()


@pytest.fixture(scope="module")
def new_user(nodes, admin):
    """Makes users with a caller of each server. They and their sandboxes stay until the last test."""
    created = []

    def new_user():
        name = f"user-{secrets.token_hex(4)}"
        admin.ok("POST", "/users", {"name": name, "role": "user"})
        key = admin.ok("POST", "/keys", {"name": "test", "user": name})["key"]
        created.append((name, [server.api(key) for server in (nodes.first, nodes.second)]))
        return created[-1]

    yield new_user
    for name, apis in created:
        for sandbox in admin.all(owner=name):
            admin.remove(sandbox["sandbox_id"])
        for api in apis:
            api.close()
        admin.ok("DELETE", f"/users/{name}")


def everything(nodes, admin):
    """What a request might change: the ids of all sandboxes, and how many rows the other tables have."""
    tables = ("users", "api_keys", "snapshots", "volumes", "secrets", "meta")
    return ids(admin), {table: nodes.postgres.query(f"select count(*) from {table}") for table in tables}


def ids(api, **filters):
    return {one["sandbox_id"] for one in api.all(**filters)}


def test_a_key_sees_only_its_owners_sandboxes_at_every_node(new_user):
    (alice_name, alice), (bob_name, bob) = new_user(), new_user()
    # Alice's is on the first host, bob's on the second.
    of_alice, of_bob = alice[0].create(), bob[1].create()
    for node in (0, 1):
        assert ids(alice[node]) == {of_alice} and ids(bob[node]) == {of_bob}
        # A filter narrows what is seen, and never widens it.
        assert ids(alice[node], owner=bob_name) <= {of_alice}
        assert ids(bob[node], user_id=alice_name) <= {of_bob}
        for caller, sandbox in ((alice[node], of_bob), (bob[node], of_alice)):
            replies = [
                caller.get(f"/sandboxes/{sandbox}/info"),
                caller.get(f"/sandboxes/{sandbox}/events"),
                caller.post("/sandboxes/run-command", {"sandbox_id": sandbox, "command": "true"}),
                caller.post("/sandboxes/expose-port", {"sandbox_id": sandbox, "port": 3000}),
                caller.post(f"/sandboxes/{sandbox}/pause"),
                caller.post(f"/e2b/sandboxes/{sandbox}/connect", {"timeout": 60}),
                caller.delete(f"/sandboxes/{sandbox}"),
            ]
            assert [reply.status_code for reply in replies] == [404] * len(replies), [describe_reply(reply) for reply in replies]
            assert caller.get("/nodes").status_code == 403
    # Both are there for their owners, through either node.
    for node in (0, 1):
        assert alice[node].run(of_alice, "echo mine")["output"] == "mine\n"
        assert bob[node].run(of_bob, "echo mine")["output"] == "mine\n"


def test_a_deleted_key_opens_no_node(nodes, admin, new_user):
    name, _ = new_user()
    created = admin.ok("POST", "/keys", {"name": "gone", "user": name})
    apis = [server.api(created["key"]) for server in (nodes.first, nodes.second)]
    assert [api.get("/sandboxes").status_code for api in apis] == [200, 200]
    admin.ok("DELETE", f"/keys/{created['id']}")
    assert apis[0].get("/sandboxes").status_code == 401
    # Another server may remember a key for a second.
    wait_for(lambda: apis[1].get("/sandboxes").status_code == 401, "the other node refuses the key")
    for api in apis:
        api.close()


def test_routes_between_nodes_believe_nodes_only(nodes, admin, new_user):
    name, (alice, _) = new_user()
    sandbox = alice.create()
    location, instance = nodes.postgres.query(
        f"select location, provider_id from sandboxes where id = '{sandbox}'"
    ).split("|")
    signer = Signer(nodes.postgres.query("select value from meta where name = 'auth.secret'"))
    good = signer.node(now_ms() + MINUTE_MS)
    expires, _, signature = good.partition(".")
    routes = [f"/at/{location}/internal/provider/{verb}" for verb in ("list", "delete", "create")]
    routes.append(f"/at/{location}/internal/agent/{instance}")
    credentials = {
        "none": None,
        "a user's key": alice.http.headers["Authorization"].removeprefix("Bearer "),
        "the admin's key": nodes.admin_key,
        "another secret": Signer("0" * 64).node(now_ms() + MINUTE_MS),
        "expired": signer.node(now_ms() - 1),
        "too long": signer.node(now_ms() + 60 * MINUTE_MS),
        "a later end": f"{int(expires) + 1}.{signature}",
        "a preview's": signer.preview(sandbox, 3000, now_ms() + MINUTE_MS),
        "no signature": f"{expires}.",
        "nothing": ".",
    }
    upgrade = {"Connection": "upgrade", "Upgrade": "sandyard-agent"}
    for what, credential in credentials.items():
        api = nodes.first.api(credential)
        for route in routes:
            reply = api.post(route, {"id": instance}, headers=upgrade if "/agent/" in route else {})
            assert reply.status_code in (401, 403), f"{what}: {describe_reply(reply)}"
        api.close()
    # A node's own token is believed there, and opens nothing else.
    node = nodes.first.api(good)
    reply = node.post(routes[0], {})
    assert reply.status_code not in (401, 403, 404), describe_reply(reply)
    assert [node.get(path).status_code for path in ("/sandboxes", "/users", "/nodes")] == [401, 401, 401]
    node.close()
    assert alice.run(sandbox, "echo alive")["output"] == "alive\n"


def requests_with(text, sandbox):
    """Every place where a caller's text goes to the database: method, path, options."""
    create = lambda **body: ("POST", "/sandboxes/create", {"json": body})  # noqa: E731
    yield create(alias=text)
    yield create(template=text)
    yield create(volumes={text: "/mnt"})
    yield create(secrets={"KEY": text})
    yield "POST", f"/sandboxes/{sandbox}/snapshot", {"json": {"name": text}}
    yield "POST", f"/e2b/sandboxes/{sandbox}/snapshots", {"json": {"name": text}}
    yield "POST", "/keys", {"json": {"name": "k", "user": text}}
    yield "POST", "/users", {"json": {"name": text}}
    yield "POST", "/volumes", {"json": {"name": text}}
    yield "POST", "/api/v1/auth/login", {"json": {"username": text, "password": text}}
    yield "POST", "/sandboxes/connect", {"json": {"sandbox_id": text}}
    yield "POST", "/sandboxes/read-file", {"json": {"sandbox_id": text, "path": "/etc/hostname"}}
    for name in ("owner", "user_id", "status", "project", "cursor"):
        yield "GET", "/sandboxes", {"params": {name: text}}
    for name in ("metadata", "template", "nextToken", "state"):
        yield "GET", "/e2b/v2/sandboxes", {"params": {name: text}}
    yield "GET", "/audit", {"params": {"user": text, "cursor": text}}
    if len(text) < 1000:
        # A name that is part of a path.
        for path in ("/sandboxes/{}/info", "/e2b/templates/aliases/{}"):
            yield "GET", path.format(quoted(text)), {}
        for path in ("/sandboxes/{}", "/templates/{}", "/users/{}", "/keys/{}", "/secrets/{}", "/volumes/{}"):
            yield "DELETE", path.format(quoted(text)), {}


def quoted(text):
    return "".join(f"%{byte:02X}" for byte in text.encode())


@pytest.fixture(scope="module")
def tenants(new_user):
    """Two users with a sandbox each: the callers of the first one, and both sandboxes."""
    (_, alice), (_, (bob, _)) = new_user(), new_user()
    return alice, alice[0].create(), bob.create()


@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_text_of_a_caller_is_never_sql(nodes, admin, tenants, number):
    (_, alice), sandbox, of_bob = tenants
    before = everything(nodes, admin)
    # By the node that does not have the sandbox, too.
    for caller in (alice, admin):
        for method, path, options in requests_with(TEXTS[number], sandbox):
            reply = caller.request(method, path, **options)
            assert reply.status_code < 500, describe_reply(reply)
            # Only a list may succeed with such a text, and then it has nothing in it that the caller may not see.
            if reply.status_code < 300:
                assert method == "GET", describe_reply(reply)
                assert caller is admin or of_bob not in reply.text, describe_reply(reply)
    assert everything(nodes, admin) == before


def test_metadata_is_kept_as_it_is_or_refused(new_user):
    _, (alice, alice_at_second) = new_user()
    for text in TEXTS:
        reply = alice.post("/sandboxes/create", {"metadata": {"whose": text}})
        if "\0" in text:
            assert 400 <= reply.status_code < 500, describe_reply(reply)
            continue
        sandbox = answer(reply)["sandbox_id"]
        assert alice_at_second.info(sandbox)["metadata"] == {"whose": text}
        if len(text) < 1000:
            assert list_matching(alice_at_second, text) == [sandbox]
        assert list_matching(alice_at_second, "other") == []
        alice.remove(sandbox)


def list_matching(api, text):
    """Sandboxes with this value in their metadata. E2B's clients encode the value, the pair, and the parameter."""
    pairs = "whose%3D" + quoted(quoted(quoted(text)))
    return [one["sandboxID"] for one in answer(api.get(f"/e2b/v2/sandboxes?metadata={pairs}"))]


def test_a_user_id_gives_no_sandbox_away(nodes, admin, new_user):
    """Anybody may say whom a sandbox is for; one that a user makes stays that user's."""
    name, (alice, _) = new_user()
    bob, _ = new_user()
    before = everything(nodes, admin)
    for text in [*TEXTS, bob, "admin"]:
        reply = alice.post("/sandboxes/create", {"user_id": text})
        assert reply.status_code < 500, describe_reply(reply)
        if reply.status_code == 200:
            sandbox = reply.json()["sandbox_id"]
            assert ids(admin, owner=name) == ids(alice) == {sandbox}
            alice.remove(sandbox)
    assert everything(nodes, admin) == before
