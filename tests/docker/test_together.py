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


BUILT = """
FROM sandyard-test
ENV GREETING="hello from the image" PATH=/opt/tools:/usr/bin:/bin
RUN mkdir -p /opt/tools /srv/app /srv/emptied && echo one > /srv/app/one && echo old > /srv/emptied/old \\
    && printf '#!/bin/sh\\necho a tool\\n' > /opt/tools/tool && chmod 755 /opt/tools/tool && ln /opt/tools/tool /opt/tools/linked
RUN rm -r /srv/emptied && mkdir /srv/emptied && echo new > /srv/emptied/new && rm /usr/bin/factor && chmod 1777 /srv/app
WORKDIR /srv/app
"""


@pytest.fixture
def saved_image(docker, tmp_path):
    """An archive of an image that Docker built on ours, as `docker save` writes it."""
    docker.build_image("sandyard-built:1", BUILT)
    path = tmp_path / "saved.tar"
    with path.open("wb") as file:
        docker.save_image("sandyard-built:1", file)
    yield path
    docker.remove_image("sandyard-built:1")


def test_an_image_of_docker_is_a_template_of_the_embedded_engine(api, saved_image):
    def content():
        with saved_image.open("rb") as file:
            while part := file.read(1 << 20):
                yield part

    imported = api.request("PUT", "/templates/built", params={"provider": "embedded"}, content=content(), timeout=300)
    assert imported.status_code == 200, describe_reply(imported)
    sandbox = api.create(template="built", provider="embedded")
    run = lambda command: api.run(sandbox, command)["output"]  # noqa: E731
    assert run("pwd; cat one; echo $GREETING") == "/srv/app\none\nhello from the image\n"
    assert run("tool; linked; ls /srv/emptied; test -e /usr/bin/factor || echo deleted") == "a tool\na tool\nnew\ndeleted\n"
    assert run("stat -c %a:%U . && touch mine && stat -c %U mine; sudo id -un") == "1777:root\nuser\nroot\n"
    # What it was made from is kept by those that come from it.
    api.pause(sandbox)
    assert api.delete("/templates/built", params={"provider": "embedded"}).status_code == 200
    assert run("cat one") == "one\n"
    api.remove(sandbox)
