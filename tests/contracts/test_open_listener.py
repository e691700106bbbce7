"""A listener without credentials is for programs of this host, not for web pages, and never where others reach it."""

import pytest

from api import describe_reply
from server import server_that_refuses


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "10.0.0.1", "notlocalhost"])
def test_a_rebound_name_is_refused(api, host):
    for path in ("/sandboxes", "/api/sandboxes/"):
        assert api.get(path, headers={"Host": host}).status_code == 403


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "LOCALHOST:1"])
def test_names_of_this_host_are_taken(api, host):
    assert api.get("/sandboxes", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://localhost:3000"},
        {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"X-Forwarded-For": "1.2.3.4"},
    ],
)  # fmt: skip
def test_a_web_page_of_somebody_else_is_refused(api, headers):
    reply = api.post("/sandboxes/create", {"user_id": "page"}, headers=headers)
    assert reply.status_code in (401, 403), describe_reply(reply)
    assert "access-control-allow-origin" not in reply.headers
    preflight = api.request("OPTIONS", "/sandboxes/create", headers={**headers, "Access-Control-Request-Method": "POST"})
    assert "access-control-allow-origin" not in preflight.headers
    assert api.all(owner="page") == []


@pytest.mark.parametrize(
    "flags", [["--host", "0.0.0.0"], ["--host", "127.0.0.1,0.0.0.0"], ["--public-url", "https://yard.example"]]
)
def test_a_server_that_others_reach_refuses_to_be_open(flags):
    code, response = server_that_refuses(*flags, "--auth", "open")
    assert code != 0
    assert "auth" in response and "required" in response, response
