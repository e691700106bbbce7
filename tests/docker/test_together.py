"""Several providers behind one server: who is asked, who steps in, and what stays with whom."""

import pytest

from api import describe_reply
from providers import docker_variables
from server import Server


def test_every_request_may_choose(api, make, behind):
    container, native = make(provider="docker"), make(provider="embedded")
    assert [api.info(one)["provider"] for one in (container, native)] == ["docker", "embedded"]
    assert behind.state(container) == "running"
    for one in (container, native):
        api.write(one, "/home/user/x", "seen")
        assert api.run(one, "cat x")["output"] == "seen"
    entries = {one["sandbox_id"]: one["provider"] for one in api.all()}
    assert (entries[container], entries[native]) == ("docker", "embedded")


def test_health_names_all(api):
    providers = {one["name"]: one for one in api.get("/health").json()["providers"]}
    assert {name: one["status"] for name, one in providers.items()} == {"docker": "healthy", "embedded": "healthy"}
    assert [name for name, one in providers.items() if one["default"]] == ["docker"]
    metrics = api.get("/metrics").text
    assert 'provider="docker"' in metrics and 'provider="embedded"' in metrics


def test_templates_may_belong_to_a_provider(dockerd):
    variables = docker_variables(
        dockerd.host, SANDBOX_PROVIDER="embedded", SANDYARD_TEMPLATE_PROVIDERS="sandyard-test:latest=docker"
    )
    with Server("--ready", "0", variables=variables) as server:
        api = server.api()
        assert api.info(api.create())["provider"] == "embedded"
        assert api.info(api.create(template="sandyard-test:latest"))["provider"] == "docker"
        api.close()


@pytest.fixture
def falling_back(tmp_path):
    """A server whose Docker is not there, with the embedded engine to step in."""
    variables = docker_variables(f"unix://{tmp_path}/nobody.sock", SANDYARD_FALLBACK="docker,embedded")
    with Server("--ready", "0", variables=variables, is_degraded=True) as server:
        api = server.api()
        yield api
        api.close()


def test_another_provider_steps_in_for_a_create(falling_back):
    api = falling_back
    sandbox = api.create()
    assert api.info(sandbox)["provider"] == "embedded"
    assert api.run(sandbox, "echo here")["output"] == "here\n"
    insisted = api.post("/sandboxes/create", {"user_id": "tester", "provider": "docker"})
    assert insisted.status_code == 503, describe_reply(insisted)
    api.remove(sandbox)
