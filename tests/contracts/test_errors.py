"""Errors: an unknown id is 404 wherever it is named, and every refusal says what to do."""

import pytest

from api import describe_reply

UNKNOWN = "nosuchsandbox0000000"


@pytest.mark.parametrize(
    "method, path, body",
    [
        ("POST", "/sandboxes/connect", {}),
        ("POST", "/sandboxes/run-command", {"command": "true"}),
        ("POST", "/sandboxes/run-cmd", {"command": "true", "background": True}),
        ("POST", "/sandboxes/run-command-stream", {"command": "true"}),
        ("POST", "/sandboxes/write-file", {"path": "/tmp/x", "content": "x"}),
        ("POST", "/sandboxes/read-file", {"path": "/tmp/x"}),
        ("POST", "/sandboxes/download-file", {"file_path": "/tmp/x"}),
        ("POST", "/sandboxes/download-file-stream", {"file_path": "/tmp/x"}),
        ("POST", "/sandboxes/upload-file-from-url", {"file_path": "/tmp/x", "url": "http://example.com/"}),
        ("POST", "/sandboxes/download-to-presigned-url", {"file_path": "/tmp/x", "presigned_url": "http://example.com/"}),
        ("POST", "/sandboxes/create-directory", {"directory_path": "/tmp/x"}),
        ("POST", "/sandboxes/expose-port", {"port": 80}),
        ("POST", "/sandboxes/schedule-timeout", {"timeout": 60}),
        ("POST", "/sandboxes/setup-mcp", {}),
        ("POST", "/sandboxes/delete", {}),
        ("GET", "/sandboxes/{id}/status", None),
        ("GET", "/sandboxes/{id}/info", None),
        ("GET", "/sandboxes/{id}/urls", None),
        ("GET", "/sandboxes/{id}/metrics", None),
        ("GET", "/sandboxes/{id}/logs", None),
        ("GET", "/sandboxes/{id}/events", None),
        ("GET", "/sandboxes/{id}/flows", None),
        ("GET", "/sandboxes/{id}/network", None),
        ("PUT", "/sandboxes/{id}/network", {}),
        ("POST", "/sandboxes/{id}/network/allow", {"targets": ["pypi.org"]}),
        ("POST", "/sandboxes/{id}/network/deny", {"targets": ["pypi.org"]}),
        ("POST", "/sandboxes/{id}/pause", None),
        ("POST", "/sandboxes/{id}/resume", None),
        ("DELETE", "/sandboxes/{id}", None),
        ("GET", "/api/sandboxes/{id}", None),
        ("POST", "/api/sandboxes/{id}/execute", {"command": ["true"]}),
        ("POST", "/api/sandboxes/{id}/start", None),
        ("POST", "/api/sandboxes/{id}/stop", None),
        ("DELETE", "/api/sandboxes/{id}", None),
    ],
)
@pytest.mark.parametrize("unknown", [UNKNOWN, "29ef1923-20e4-4e41-9d76-1fffafbaaaeb", "..", "ü"])
def test_an_unknown_id_is_404_everywhere(api, method, path, body, unknown):
    if "{id}" in path and unknown in ("..",):
        unknown = "%2e%2e"
    if body is not None and "{id}" not in path:
        body = {"sandbox_id": unknown, **body}
    reply = api.request(method, path.replace("{id}", unknown), json=body)
    assert reply.status_code == 404, describe_reply(reply)
    assert reply.json()["detail"] and reply.json()["code"]


def test_every_error_says_what_to_do(api, shared):
    for reply in (
        api.post("/sandboxes/read-file", {"sandbox_id": shared, "path": "/nothing"}),
        api.post("/sandboxes/run-command", {"sandbox_id": UNKNOWN, "command": "true"}),
        api.post("/sandboxes/create", {"user_id": "tester", "memory_limit": "999999g"}),
        api.http.post("/sandboxes/create", content=b"{", headers={"Content-Type": "application/json"}),
        api.get("/no/such/route"),
    ):
        assert 400 <= reply.status_code < 500, describe_reply(reply)
        assert reply.json()["detail"] and reply.json()["code"], describe_reply(reply)


@pytest.mark.parametrize(
    "field, value, hint",
    [
        ("memory_limits", "1g", "did you mean `memory_limit`?"),
        ("names", "web", "did you mean `name`?"),
        ("metadata_", {}, "did you mean `metadata`?"),
    ],
)
def test_an_unknown_field_is_refused_with_the_likely_name(api, field, value, hint):
    reply = api.post("/sandboxes/create", {"user_id": "tester", field: value})
    assert reply.status_code == 422, describe_reply(reply)
    body = reply.json()
    assert (body["field"], body["hint"]) == (field, hint)


def test_create_accepts_the_short_names_of_limits_and_time_spans(api):
    reply = api.post("/sandboxes/create", {"user_id": "tester", "memory": "512m", "cpu": 1, "timeout": "1h"})
    assert reply.status_code == 200, describe_reply(reply)
    sandbox = reply.json()["sandbox_id"]
    info = api.get(f"/sandboxes/{sandbox}/info").json()
    api.delete(f"/sandboxes/{sandbox}")
    assert info["limits"]["memory_bytes"] == 512 << 20
    assert info["limits"]["cpu"] == 1.0
    assert info["timeout"] == 3600


def test_a_time_span_that_cannot_be_read_says_what_one_looks_like(api):
    reply = api.post("/sandboxes/create", {"user_id": "tester", "timeout": "soon"})
    assert reply.status_code == 422, describe_reply(reply)
    assert reply.json()["detail"] == 'timeout: invalid value: string "soon", expected seconds, or a time span like `30m`'
