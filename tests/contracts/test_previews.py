"""Ports of sandboxes: every form of address, every kind of traffic, and who may look."""

import hashlib
import secrets

import httpx
import pytest

from api import describe_reply
from previews import PORT, Preview, start_site

MIB = 1 << 20


@pytest.fixture(scope="module")
def site(api, shared):
    start_site(api, shared)
    return shared


@pytest.fixture(params=Preview.FORMS)
def preview(request, server, site):
    return Preview(server, site, request.param)


def test_http_works_in_both_directions(preview):
    seen = preview.get("/some/page?q=1").json()
    assert (seen["method"], seen["path"]) == ("GET", "/some/page?q=1")
    body = secrets.token_bytes(5 * MIB)
    posted = preview.request("POST", "/form", content=body).json()
    assert (posted["size"], posted["sha256"]) == (len(body), hashlib.sha256(body).hexdigest())


def test_our_own_credentials_never_reach_the_sandbox(server, preview):
    headers = {"X-API-Key": server.admin_key, "X-Sandyard-Token": "t", "Cookie": "sandyard_preview=t; theirs=1"}
    seen = preview.get("/", headers=headers).json()["headers"]
    assert server.admin_key not in str(seen)
    assert "sandyard_preview" not in str(seen) and "theirs=1" in str(seen)
    assert "x-sandyard-token" not in {name.lower() for name in seen}


def test_events_come_one_by_one_not_at_the_end(preview):
    with httpx.stream("GET", preview.base + "/sse", headers=preview.headers, timeout=120, trust_env=False) as reply:
        assert reply.headers["content-type"] == "text/event-stream"
        lines = (line for line in reply.iter_lines() if line)
        for number in range(3):
            # The site sends the next one only after this request.
            assert next(lines) == f"data: event {number}"
            preview.request("PUT", f"/seen/{number}")


def test_websocket_works_in_both_directions(preview):
    with preview.websocket() as socket:
        for message in ("text", b"bytes", "x" * 60_000):
            socket.send(message)
            assert socket.recv() == message


def test_a_port_without_listener_says_so(server, site):
    preview = Preview(server, site, "path", 3999)
    for accept, kind in (("text/html", "text/html"), ("application/json", "application/json")):
        reply = preview.get(headers={"Accept": accept})
        assert reply.status_code == 502, describe_reply(reply)
        assert reply.headers["content-type"].startswith(kind)
        assert "3999" in reply.text
    assert preview.get(headers={"Accept": "application/json"}).json()["code"] == "port_closed"


@pytest.mark.parametrize("form", Preview.FORMS)
def test_a_sandbox_that_is_gone_or_never_was_says_so(server, api, make, form):
    removed = make()
    api.remove(removed)
    for sandbox in (removed, "nosuchsandbox0000000"):
        page = Preview(server, sandbox, form).get(headers={"Accept": "text/html"})
        assert page.status_code == 404, describe_reply(page)
        assert page.headers["content-type"].startswith("text/html")
        assert "sandbox" in page.text


def test_post_to_mcp_is_not_redirected(server, api, make):
    """The tool server of the originals answered 307 to a POST at /mcp, which clients do not follow."""
    sandbox = make()
    url = api.ok("GET", f"/sandboxes/{sandbox}/urls")["mcp_url"].removesuffix("/mcp")
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}
    accept = {"Accept": "application/json, text/event-stream"}
    for path in ("/mcp", "/mcp/"):
        with httpx.stream("POST", url + path, json=hello, headers=accept, timeout=120, trust_env=False) as reply:
            assert reply.status_code == 200, path
            assert any("serverInfo" in line for line in reply.iter_lines()), path


def test_setup_mcp_knows_every_tool_at_the_first_call(api, make):
    sandbox = make()
    config = {"mcpServers": {"mine": {"command": "no-such-program"}}}
    reply = api.ok("POST", "/sandboxes/setup-mcp", {"sandbox_id": sandbox, "mcp_config": config, "timeout": 120})
    assert reply["success"] is True and reply["mcp_url"]
    assert {"Bash", "Read", "Write"} <= set(reply["tools"])
    assert reply["servers"]["mine"]["status"] == "failed", reply


# --- who may look: the server asks everybody for credentials


@pytest.fixture(scope="module")
def private(guarded, admin):
    sandbox = admin.create(user_id="owner-of-previews")
    start_site(admin, sandbox)
    yield sandbox
    admin.remove(sandbox)


@pytest.fixture(params=Preview.FORMS)
def private_preview(request, guarded, private):
    return Preview(guarded, private, request.param)


def test_a_port_is_private_unless_asked_otherwise(private_preview):
    assert private_preview.get().status_code == 401
    assert private_preview.get(headers={"X-Sandyard-Token": "made-up"}).status_code == 403
    assert private_preview.get(headers={"Authorization": "Bearer e2b_" + "0" * 40}).status_code in (401, 403)
    for path in ("/?sandyard_token=1.x", "/?sandyard_token="):
        assert private_preview.get(path).status_code in (401, 403)


@pytest.mark.parametrize("port, path", [(6060, "/custom-mcp"), (6060, "/mcp"), (6060, "/credential"), (9000, "/")])
def test_tool_server_and_editor_are_not_open_to_the_world(guarded, private, port, path):
    for form in Preview.FORMS:
        preview = Preview(guarded, private, form, port)
        body = {"mcpServers": {"evil": {"command": "sh", "args": ["-c", "id"]}}}
        assert preview.request("POST", path, json=body).status_code == 401
        assert preview.get(path).status_code == 401


def test_a_private_websocket_needs_the_token_too(private_preview):
    with pytest.raises(Exception, match="401"):
        private_preview.websocket()


def test_its_owner_looks_with_a_key_and_others_do_not(guarded, private_preview, new_user):
    assert private_preview.get(headers={"Authorization": f"Bearer {guarded.admin_key}"}).status_code == 200
    assert private_preview.get(headers={"X-API-Key": guarded.admin_key}).status_code == 200
    other_user = new_user()
    assert private_preview.get(headers={"X-API-Key": other_user.key}).status_code in (401, 403)


def signed_url(admin, sandbox, port=PORT):
    return admin.ok("POST", "/sandboxes/expose-port", {"sandbox_id": sandbox, "port": port})["signed_url"]


def test_a_signed_link_opens_one_port_for_programs_and_browsers(guarded, admin, private):
    url = signed_url(admin, private)
    token = url.partition("sandyard_token=")[2]
    assert httpx.get(url, timeout=120, trust_env=False).status_code == 200
    for form in Preview.FORMS:
        assert Preview(guarded, private, form).get(headers={"X-Sandyard-Token": token}).status_code == 200
        assert Preview(guarded, private, form, 3001).get(headers={"X-Sandyard-Token": token}).status_code == 403
    assert token not in httpx.get(url, timeout=120, trust_env=False).text


def test_a_browser_gets_a_cookie_and_an_address_without_the_token(admin, private):
    with httpx.Client(timeout=120, trust_env=False, headers={"Accept": "text/html"}) as browser:
        first = browser.get(signed_url(admin, private))
        assert first.status_code == 303 and "sandyard_token" not in first.headers["location"]
        cookie = first.headers["set-cookie"]
        assert "HttpOnly" in cookie and "SameSite" in cookie
        assert browser.get(first.url.join(first.headers["location"])).status_code == 200


@pytest.mark.parametrize(
    "change", [lambda t: "9" + t, lambda t: t[:-2] + ("AA" if t[-2:] != "AA" else "BB"), lambda t: t + "x"]
)
def test_a_signed_link_cannot_be_altered(guarded, admin, private, change):
    token = change(signed_url(admin, private).partition("sandyard_token=")[2])
    assert Preview(guarded, private, "path").get(headers={"X-Sandyard-Token": token}).status_code == 403


def test_a_port_is_public_on_request_and_private_again(guarded, admin, private):
    route = f"/sandboxes/{private}/ports/{PORT}"
    assert admin.ok("POST", route, {"public": True})["public"] is True
    for form in Preview.FORMS:
        assert Preview(guarded, private, form).get().status_code == 200
    assert Preview(guarded, private, "path", 3001).get().status_code == 401
    assert admin.ok("POST", route, {"public": False})["public"] is False
    assert Preview(guarded, private, "path").get().status_code == 401
