"""A server with the template `agent`, which $TEMPLATE names, a stand-in for the models' hosts, and a browser on this host."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from authority import Authority
from editor import TIMEOUT
from model import Model
from names import Names
from program import environment, find_program
from server import Server

_CHROMIUM = "/usr/bin/chromium"


@pytest.fixture(scope="session")
def model():
    """The host of both models: `https://model.test`, known to the server of the tests alone."""
    folder = Path(tempfile.mkdtemp(prefix="sandyard-agent-template-", dir="/var/tmp"))
    try:
        with Model(Authority(folder)) as model:
            yield model
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def server(model):
    names = Names()
    names.set(model.name, model.address)
    settings = {
        "AUTH_MODE": "required",
        "GATEWAY_REACHABLE": f"{model.address}:{model.port}",
        "GATEWAY_NAMESERVERS": names.authority,
        "GATEWAY_TRUSTED_CA": str(model.authority.path),
    }
    with names, Server("--ready", "0", **settings) as server:
        command = [find_program(), "--data-dir", server.data.path, "--url", server.url, "template", "import"]
        done = subprocess.run(
            [*command, "agent", os.environ["TEMPLATE"]],
            env=environment(SANDYARD_API_KEY=server.admin_key), capture_output=True, text=True, timeout=800,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        yield server


@pytest.fixture(scope="session")
def api(server):
    api = server.admin()
    yield api
    api.close()


@pytest.fixture(scope="session")
def keys(api, model):
    """The secrets of the models, which no sandbox ever sees."""
    for name, value in model.keys.items():
        api.ok("PUT", f"/secrets/{name}", {"value": value, "hosts": [model.name], "is_shared": True})
    return {"ANTHROPIC_API_KEY": "anthropic", "OPENAI_API_KEY": "openai"}


@pytest.fixture
def make(api):
    """Makes sandboxes that are gone after the test."""
    created = []

    def make(template="agent", **body):
        created.append(api.create(template=template, **body))
        return created[-1]

    yield make
    for sandbox in created:
        api.remove(sandbox)


@pytest.fixture
def agent_sandbox(make, keys, api, model):
    """A sandbox whose agents are configured to use the stand-in. They have placeholders for its keys."""
    sandbox = make(secrets=keys, env={"ANTHROPIC_BASE_URL": model.url})
    # What a person would do who has a host of their own: the file is the template's.
    api.run(sandbox, f"sed -i 's#https://api.openai.com#{model.url}#' ~/.codex/config.toml")
    assert model.url in api.read(sandbox, "/home/user/.codex/config.toml")
    return sandbox


@pytest.fixture(scope="session")
def chromium():
    """Real Chromium on this host."""
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=flags, timeout=TIMEOUT)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium):
    """A window that nobody has used."""
    context = chromium.new_context(viewport={"width": 1200, "height": 800})
    context.set_default_timeout(TIMEOUT)
    yield context.new_page()
    context.close()


@pytest.fixture(scope="session")
def pictures():
    """Where pictures are kept for people to look at."""
    checkout = Path(__file__).resolve().parents[2]
    folder = Path(os.environ.get("CARGO_TARGET_DIR", checkout / "target")) / "test-logs" / "agent-template"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
