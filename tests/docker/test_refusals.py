"""What cannot be made is said in words that tell what to do, and leaves nothing behind."""

import pytest

from api import describe_reply
from providers import docker_variables
from server import Server


@pytest.fixture
def before(docker):
    remains = docker.remains()
    yield remains
    assert docker.remains() == remains, "a refused create leaves nothing"


def refused(api, code, parts, **body):
    reply = api.post("/sandboxes/create", {"user_id": "tester", **body})
    assert reply.status_code >= 400 and reply.json()["code"] in code, describe_reply(reply)
    response = reply.text
    assert all(word in response for word in parts), describe_reply(reply)
    assert reply.json().get("hint") or "hint" in response or "docker" in response.lower(), describe_reply(reply)
    return reply


@pytest.mark.parametrize("image", ["no-such-image:latest", "127.0.0.1:1/nobody/listens:here"])
def test_unknown_image_is_said_by_its_name(api, before, image):
    refused(api, ("not_found", "invalid", "provider_failed", "unsupported"), [image], template=image)


def test_unknown_image_is_not_fetched_unless_allowed(dockerd, before):
    with Server("--ready", "0", variables=docker_variables(dockerd.host), DOCKER_PULL="never") as server:
        api = server.api()
        refused(api, ("not_found", "invalid"), ["no-such-image"], template="no-such-image:latest")
        api.close()


@pytest.mark.parametrize("image", ["UPPER:latest", "a b", "../x", "x" * 300, "img@sha256:xyz"])
def test_what_is_no_name_of_an_image_is_invalid(api, before, image):
    reply = api.post("/sandboxes/create", {"user_id": "tester", "template": image})
    assert reply.status_code in (400, 404, 422), describe_reply(reply)


def test_runtime_that_the_daemon_does_not_know_is_said_by_its_name(dockerd, before):
    variables = docker_variables(dockerd.host, DOCKER_RUNTIME="no-such-runtime", SANDYARD_PROVIDERS="embedded")
    with Server("--ready", "0", variables=variables, is_degraded=True) as server:
        api = server.api()
        refused(api, ("not_found", "invalid", "provider_failed", "unsupported", "unavailable"), ["no-such-runtime"])
        api.close()


def test_runtime_that_the_daemon_knows_is_used(dockerd):
    with Server("--ready", "0", variables=docker_variables(dockerd.host, DOCKER_RUNTIME="runc")) as server:
        api = server.api()
        sandbox = api.create()
        assert dockerd.api.container(api.info(sandbox)["provider_sandbox_id"])["HostConfig"]["Runtime"] == "runc"
        api.remove(sandbox)
        api.close()


def test_more_than_allowed_is_refused(api, before):
    reply = api.post("/sandboxes/create", {"user_id": "tester", "memory_limit": "999999g"})
    assert reply.status_code in (400, 422), describe_reply(reply)


def test_unknown_provider_is_refused_with_those_there_are(api, before):
    reply = api.post("/sandboxes/create", {"user_id": "tester", "provider": "no-such-provider"})
    assert reply.status_code in (400, 404, 422), describe_reply(reply)
    assert "docker" in reply.text and "embedded" in reply.text, describe_reply(reply)
