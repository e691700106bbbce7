"""The two endpoints that talk to a URL: not to this host, not to its network, not after a redirect."""

import pytest

from api import describe_reply

CLOSED = [
    "http://127.0.0.1:{port}/secret", "http://localhost:{port}/secret", "http://LOCALHOST.:{port}/secret",
    "http://[::1]:{port}/secret", "http://[::ffff:127.0.0.1]:{port}/secret", "http://0.0.0.0:{port}/secret",
    "http://2130706433:{port}/secret", "http://0x7f000001:{port}/secret", "http://0177.0.0.1:{port}/secret",
    "http://127.1:{port}/secret", "http://user@127.0.0.1:{port}/secret", "http://x.localhost:{port}/secret",
    "http://169.254.169.254/latest/meta-data/", "http://[fd00:ec2::254]/latest/", "http://100.100.100.200/",
    "http://10.0.0.1/", "http://172.16.0.1/", "http://192.168.0.1/", "http://[fe80::1]/", "http://[64:ff9b::7f00:1]/",
    "file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1:6379/", "unix:/run/x.sock", "http://", "nonsense",
]  # fmt: skip


@pytest.fixture(scope="module")
def closed_port(server):
    """A port of this host the server may not be asked about: its own."""
    return server.port


@pytest.mark.parametrize("url", CLOSED)
def test_a_file_does_not_come_from_this_host_or_its_network(api, shared, closed_port, url):
    body = {"sandbox_id": shared, "file_path": "/tmp/stolen", "url": url.format(port=closed_port)}
    reply = api.post("/sandboxes/upload-file-from-url", body)
    assert reply.status_code in (400, 403, 422), describe_reply(reply)
    assert api.post("/sandboxes/read-file", {"sandbox_id": shared, "path": "/tmp/stolen"}).status_code == 404


@pytest.mark.parametrize("url", CLOSED)
def test_a_file_does_not_go_to_this_host_or_its_network(api, shared, closed_port, url):
    api.write(shared, "/tmp/sent", "x")
    body = {"sandbox_id": shared, "file_path": "/tmp/sent", "presigned_url": url.format(port=closed_port)}
    reply = api.post("/sandboxes/download-to-presigned-url", body)
    assert reply.status_code in (400, 403, 422), describe_reply(reply)


def test_a_redirect_to_a_private_address_is_not_followed(server, api, shared, web_server):
    for target in (
        f"http://127.0.0.1:{server.port}/health",
        "http://169.254.169.254/",
        "http://localhost:1/",
        "file:///etc/passwd",
    ):
        body = {"sandbox_id": shared, "file_path": "/tmp/redirected", "url": f"{web_server.url}/to?{target}"}
        reply = api.post("/sandboxes/upload-file-from-url", body)
        assert reply.status_code in (400, 403, 422), describe_reply(reply)
        assert f"/to?{target}" in web_server.request_log
        assert api.post("/sandboxes/read-file", {"sandbox_id": shared, "path": "/tmp/redirected"}).status_code == 404


def test_a_redirect_to_an_allowed_host_is_followed_but_not_for_ever(api, shared, web_server):
    body = {"sandbox_id": shared, "file_path": "/tmp/fetched", "url": f"{web_server.url}/to?{web_server.url}/file"}
    assert api.ok("POST", "/sandboxes/upload-file-from-url", body)["success"] is True
    assert api.read(shared, "/tmp/fetched") == "from outside"
    loop = f"{web_server.url}/to?/to?" + "/to?" * 20 + "/file"
    reply = api.post("/sandboxes/upload-file-from-url", {**body, "url": loop})
    assert reply.status_code in (400, 403, 422, 502), describe_reply(reply)


def test_files_come_from_and_go_to_a_host_the_operator_allows(api, shared, web_server):
    body = {"sandbox_id": shared, "file_path": "/tmp/came", "url": f"{web_server.url}/file"}
    assert api.ok("POST", "/sandboxes/upload-file-from-url", body)["success"] is True
    assert api.read(shared, "/tmp/came") == "from outside"
    body = {"sandbox_id": shared, "file_path": "/tmp/came", "presigned_url": f"{web_server.url}/kept?signature=x"}
    assert api.ok("POST", "/sandboxes/download-to-presigned-url", body)["success"] is True
    assert web_server.stored["/kept?signature=x"] == b"from outside"
