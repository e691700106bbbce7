"""Images that Docker built, as templates of the embedded engine: by an archive, and from a registry."""

import subprocess

import pytest

from api import describe_reply
from program import environment, find_program
from registry import Registry

BUILT = """
FROM sandyard-test
ENV GREETING="hello from the image" PATH=/opt/tools:/usr/bin:/bin
RUN mkdir -p /opt/tools /srv/app /srv/emptied && echo one > /srv/app/one && echo old > /srv/emptied/old \\
    && printf '#!/bin/sh\\necho a tool\\n' > /opt/tools/tool && chmod 755 /opt/tools/tool && ln /opt/tools/tool /opt/tools/linked
RUN rm -r /srv/emptied && mkdir /srv/emptied && echo new > /srv/emptied/new && rm /usr/bin/factor && chmod 1777 /srv/app
WORKDIR /srv/app
"""


@pytest.fixture(scope="module")
def built(docker):
    """An image that Docker built on ours."""
    docker.build_image("sandyard-built:1", BUILT)
    yield "sandyard-built:1"
    docker.remove_image("sandyard-built:1")


@pytest.fixture
def saved_image(docker, built, tmp_path):
    """An archive of it, as `docker save` writes it."""
    path = tmp_path / "saved.tar"
    with path.open("wb") as file:
        docker.save_image(built, file)
    return path


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

def pull(server, image, name, config="/nonexistent"):
    """`sandyard template pull`, with the account in the folder `config`."""
    command = [find_program(), "template", "pull", image, name, "--provider", "embedded", "--url", server.url]
    variables = {**environment(), "DOCKER_CONFIG": str(config)}
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=300)


def check_template(api, name):
    sandbox = api.create(template=name, provider="embedded")
    assert api.run(sandbox, "cat one; linked")["output"] == "one\na tool\n"
    api.remove(sandbox)
    assert api.delete(f"/templates/{name}", params={"provider": "embedded"}).status_code == 200


def test_an_image_is_pulled_from_a_registry(server, api, docker, built):
    with Registry() as registry:
        image = docker.push_image(built, registry)
        pulled = pull(server, image, "pulled")
        assert (pulled.returncode, pulled.stdout) == (0, "pulled\n"), pulled.stderr
        check_template(api, "pulled")
        missing = pull(server, f"{image}2", "missing")
        assert missing.returncode != 0 and f"`{registry.address}` has no image `{image}2`" in missing.stderr, missing.stderr
        # A layer that is not what its digest says.
        largest = max(registry.blobs(), key=lambda path: path.stat().st_size)
        with largest.open("r+b") as file:
            file.seek(largest.stat().st_size // 2)
            file.write(b"damaged")
        damaged = pull(server, image, "damaged")
        assert damaged.returncode != 0 and ("checksum" in damaged.stderr or "layer" in damaged.stderr), damaged.stderr
        names = [one["name"] for one in api.ok("GET", "/templates")["templates"]]
        assert "damaged" not in names and "missing" not in names


def test_a_registry_with_a_password_gets_the_account_of_docker(server, api, docker, built, tmp_path):
    # As `htpasswd -nbB puller secret` prints it.
    with Registry("puller", "secret", "puller:$2b$05$bkfpwBF4lJfBTwjgu8x5UO/NzDorDg3t9PRfpcieaQBeL0KslGQ1y") as registry:
        image = docker.push_image(built, registry)
        refused = pull(server, image, "private")
        assert refused.returncode != 0 and f"docker login {registry.address}" in refused.stderr, refused.stderr
        pulled = pull(server, image, "private", registry.login(tmp_path))
        assert pulled.returncode == 0, pulled.stderr
        check_template(api, "private")
