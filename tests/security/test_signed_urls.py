"""Signed links open one file or one port of one sandbox, for one operation and until one time, and nothing else."""

import time

import httpx
import pytest

from api import describe_reply
from signing import MINUTE_MS, Signer, file_signature, now_ms, secret_of

AGENT_PORT, PORT = 49983, 3000
REFUSED = (401, 403, 404)
# What E2B's data plane answers when there is no such sandbox.
NO_SANDBOX = 502
SITE = "exec python3 -m http.server 3000 --directory /home/user"
CLIENT = {"timeout": 120, "trust_env": False}


class FileLinks:
    """File URLs of one sandbox, signed with the access token that its owner got."""

    def __init__(self, server, user, **body):
        self.server, self.api = server, user.api
        self.id = user.api.create(**body)
        self.token = self.connect(user)

    def connect(self, user):
        reply = user.api.post(f"/e2b/sandboxes/{self.id}/connect", {"timeout": 600})
        assert reply.status_code in (200, 201), describe_reply(reply)
        return reply.json()["envdAccessToken"]

    def query(self, path, operation="read", user="user", expiration=None, token=None):
        query = {"path": path, "username": user, "signature": file_signature(token or self.token, path, operation, user, expiration)}
        return query if expiration is None else {**query, "signature_expiration": str(expiration)}

    def request_variants(self, sandbox=None):
        """Each way to name a sandbox: by headers, by the host, or by the signature alone."""
        sandbox = sandbox or self.id
        url = f"{self.server.e2b_url}/files"
        host = f"{AGENT_PORT}-{sandbox}.localhost:{self.server.port}"
        return {
            "headers": (url, {"E2b-Sandbox-Id": sandbox, "E2b-Sandbox-Port": str(AGENT_PORT)}),
            "host": (f"{self.server.url}/files", {"Host": host}),
            "signature": (url, {}),
        }

    def statuses(self, query, method="GET", sandbox=None, names=("headers", "host", "signature")):
        """What each way answers, by its name."""
        files = {"file": ("name", b"overwritten")} if method in ("POST", "PUT") else None
        request_variants = self.request_variants(sandbox)
        return {
            name: httpx.request(method, request_variants[name][0], params=query, headers=request_variants[name][1], files=files, **CLIENT).status_code
            for name in names
        }


def assert_refused(statuses, *more):
    assert all(status in (*REFUSED, *more) for status in statuses.values()), statuses


def assert_open(statuses):
    assert all(status == 200 for status in statuses.values()), statuses


@pytest.fixture
def links(guarded, user):
    """A sandbox with one file, and links to it."""
    links = FileLinks(guarded, user)
    user.api.write(links.id, "/home/user/one", "1")
    user.api.write(links.id, "/home/user/two", "2")
    assert_open(links.statuses(links.query("/home/user/one")))
    return links


def test_a_file_link_opens_only_what_was_signed(links):
    now = int(time.time())
    link = links.query("/home/user/one", expiration=now + 600)
    assert_open(links.statuses(link))
    other = "A" if link["signature"][3] != "A" else "B"
    changes = [
        {"path": "/home/user/two"},
        {"path": "/home/user/one/../two"},
        {"path": "/home/user//one"},
        {"username": "root"},
        {"username": ""},
        {"signature_expiration": str(now + 6000)},
        {"signature_expiration": ""},
        {"signature": f"v1_{other}{link['signature'][4:]}"},
        {"signature": link["signature"][:-1]},
        {"signature": ""},
    ]
    for change in changes:
        assert_refused(links.statuses({**link, **change}))
    assert_refused(links.statuses({name: link[name] for name in ("path", "username", "signature")}))
    assert_refused(links.statuses({name: link[name] for name in ("path", "username")}))


def test_a_second_parameter_does_not_change_what_a_link_opens(links):
    """The server and the agent both read the query; they must agree on which of two values counts."""
    link = links.query("/home/user/one")
    for name, value in (("path", "/home/user/two"), ("username", "root")):
        for pairs in ([*link.items(), (name, value)], [(name, value), *link.items()]):
            for url, headers in links.request_variants().values():
                reply = httpx.get(url, params=pairs, headers=headers, **CLIENT)
                assert reply.status_code in (400, *REFUSED) or reply.content == b"1", describe_reply(reply)


def test_an_expired_file_link_is_refused(links):
    past = int(time.time()) - 3600
    for expiration in (past, 0, -1):
        assert_refused(links.statuses(links.query("/home/user/one", expiration=expiration)))


def test_a_read_link_does_not_write_and_a_write_link_does_not_read(links):
    read, write = links.query("/home/user/one"), links.query("/home/user/one", "write")
    assert_refused(links.statuses(read, "POST"))
    for method in ("PUT", "PATCH", "DELETE"):
        for query in (read, write):
            assert not [status for status in links.statuses(query, method).values() if status not in (*REFUSED, 405)]
    assert_refused(links.statuses(write, "GET"))
    assert_refused(links.statuses(write, "HEAD"))
    assert links.api.read(links.id, "/home/user/one") == "1"
    assert_open(links.statuses(write, "POST"))
    assert links.api.read(links.id, "/home/user/one") == "overwritten"


def test_a_file_link_of_one_sandbox_does_not_open_another(guarded, new_user, links):
    bob = new_user()
    victim = FileLinks(guarded, bob)
    bob.api.write(victim.id, "/home/user/one", "of bob")
    by_name = ("headers", "host")
    assert_open(victim.statuses(victim.query("/home/user/one")))
    # Both ways round, and for both operations: alice's token says nothing about bob's sandbox.
    for query, method in ((links.query("/home/user/one"), "GET"), (links.query("/home/user/one", "write"), "POST")):
        assert_refused(victim.statuses(query, method, names=by_name))
    assert_refused(links.statuses(victim.query("/home/user/one"), sandbox=links.id, names=by_name))
    # Without a name the signature says whose it is: the answer is alice's own file.
    url, headers = victim.request_variants()["signature"]
    assert httpx.get(url, params=links.query("/home/user/one"), headers=headers, **CLIENT).content == b"1"
    assert bob.api.read(victim.id, "/home/user/one") == "of bob"
    assert links.api.read(links.id, "/home/user/one") == "1"


def test_a_file_link_dies_with_its_sandbox(guarded, user):
    links = FileLinks(guarded, user, alias="reused")
    user.api.write(links.id, "/home/user/one", "before")
    link = links.query("/home/user/one")
    assert_open(links.statuses(link))
    user.api.remove(links.id)
    assert_refused(links.statuses(link), NO_SANDBOX)
    repeated = FileLinks(guarded, user, alias="reused")
    user.api.write(repeated.id, "/home/user/one", "after")
    assert repeated.token != links.token and repeated.id != links.id
    assert_open(repeated.statuses(repeated.query("/home/user/one")))
    assert_refused(links.statuses(link), NO_SANDBOX)
    # The signature alone is that of the deleted sandbox.
    assert_refused(repeated.statuses(link), NO_SANDBOX)
    # Nor does an alias name a sandbox here, whose name another user may have too.
    assert_refused(repeated.statuses(repeated.query("/home/user/one"), sandbox="reused", names=("headers", "host")), NO_SANDBOX)


# --- previews


class Site:
    """A web site in a sandbox, reached by the path or by the host."""

    def __init__(self, server, user, **body):
        self.server, self.api = server, user.api
        self.id = user.api.create(**body)
        user.api.write(self.id, "/home/user/index.html", self.id)
        user.api.run(self.id, SITE, background=True)
        probe = "curl -s --retry 90 --retry-connrefused --retry-delay 1 http://127.0.0.1:3000/"
        assert user.api.run(self.id, probe)["stdout"] == self.id

    def token(self, port=PORT):
        url = self.api.ok("POST", "/sandboxes/expose-port", {"sandbox_id": self.id, "port": port})["signed_url"]
        return url.partition("sandyard_token=")[2]

    def statuses(self, token, sandbox=None, port=PORT, method="GET"):
        """What every way to show the token answers."""
        sandbox = sandbox or self.id
        host, path = f"{port}-{sandbox}.localhost:{self.server.port}", f"{self.server.url}/p/{sandbox}/{port}/"
        displayed = {
            "query": ({}, {"sandyard_token": token}),
            "header": ({"X-Sandyard-Token": token}, {}),
            "cookie": ({"Cookie": f"sandyard_preview={token}"}, {}),
        }
        forms = {"path": (path, {}), "host": (f"{self.server.url}/", {"Host": host})}
        return {
            (form, how): httpx.request(method, url, params=query, headers={**by_name, **headers}, **CLIENT).status_code
            for form, (url, by_name) in forms.items()
            for how, (headers, query) in displayed.items()
        }


def test_a_preview_link_opens_one_port_of_one_sandbox_for_a_time(guarded, new_user):
    alice, bob = new_user(), new_user()
    site, victim = Site(guarded, alice), Site(guarded, bob)
    token, signer = site.token(), Signer(secret_of(guarded.data))
    assert_open(site.statuses(token))
    # The tests compute tokens as the server does, so what is refused below is refused for its content.
    assert_open(site.statuses(signer.preview(site.id, PORT, now_ms() + MINUTE_MS)))
    assert_refused(site.statuses(signer.preview(site.id, PORT, now_ms() - 1)))
    assert_refused(site.statuses(signer.preview(site.id, PORT, 0)))
    assert_refused(site.statuses(Signer("0" * 64).preview(site.id, PORT, now_ms() + MINUTE_MS)))
    # One of another purpose of the same installation.
    assert_refused(site.statuses(signer.node(now_ms() + MINUTE_MS)))
    assert_refused(site.statuses(token, port=AGENT_PORT))
    assert_refused(site.statuses(token, port=6060))
    assert_refused(site.statuses(token, sandbox=victim.id))
    assert_refused(site.statuses(victim.token()))
    expires, _, signature = token.partition(".")
    assert_refused(site.statuses(f"{int(expires) + 1}.{signature}"))


def test_who_does_not_own_a_sandbox_gets_no_link_to_it(new_user):
    alice, bob = new_user(), new_user()
    sandbox = bob.api.create()
    body = {"sandbox_id": sandbox, "port": PORT}
    assert alice.api.post("/sandboxes/expose-port", body).status_code == 404
    assert alice.api.post(f"/sandboxes/{sandbox}/ports/{PORT}", {"public": True}).status_code == 404
    assert alice.api.post(f"/e2b/sandboxes/{sandbox}/connect", {"timeout": 600}).status_code == 404
    assert bob.api.ok("GET", f"/sandboxes/{sandbox}/ports/{PORT}")["public"] is False


def test_a_preview_link_dies_with_its_sandbox(guarded, user):
    site = Site(guarded, user, alias="reused")
    token = site.token()
    assert_open(site.statuses(token))
    user.api.remove(site.id)
    assert_refused(site.statuses(token))
    repeated = Site(guarded, user, alias="reused")
    assert_refused(site.statuses(token))
    assert_refused(repeated.statuses(token))
    assert_open(repeated.statuses(repeated.token()))


def test_a_link_does_not_open_the_sandbox_of_a_disabled_user(guarded, admin, user):
    site, links = Site(guarded, user), FileLinks(guarded, user)
    user.api.write(links.id, "/home/user/one", "1")
    token, link = site.token(), links.query("/home/user/one")
    assert_open(site.statuses(token))
    assert_open(links.statuses(link))
    admin.ok("PATCH", f"/users/{user.name}", {"disabled": True})
    assert_refused(site.statuses(token))
    assert_refused(links.statuses(link), NO_SANDBOX)
    admin.ok("PATCH", f"/users/{user.name}", {"disabled": False})
    assert_open(site.statuses(token))
    assert_open(links.statuses(link))
