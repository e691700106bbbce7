"""A real image registry on loopback: the package docker-registry, with or without a password."""

import base64
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import httpx

from ports import free_port
from waiting import wait_for

_CONFIG = """
version: 0.1
storage:
  filesystem:
    rootdirectory: {folder}/images
http:
  addr: 127.0.0.1:{port}
"""
_PASSWORD = """
auth:
  htpasswd:
    realm: tests
    path: {folder}/htpasswd
"""


class Registry:
    """`address` is how images of it are named: `127.0.0.1:5000/app:1`. With a user, pushing and pulling need the password."""

    def __init__(self, user=None, password=None, password_line=None):
        self.account = (user, password) if user else None
        self._line = password_line
        self._folder = Path(tempfile.mkdtemp(prefix="sandyard-test-registry-", dir="/var/tmp"))
        self.address = f"127.0.0.1:{free_port()}"

    def __enter__(self):
        values = {"folder": self._folder, "port": self.address.rpartition(":")[2]}
        text = _CONFIG.format(**values)
        if self.account:
            text += _PASSWORD.format(**values)
            (self._folder / "htpasswd").write_text(f"{self._line}\n")
        (self._folder / "config.yml").write_text(text)
        with (self._folder / "log").open("wb") as log:
            command = ["docker-registry", "serve", self._folder / "config.yml"]
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        wait_for(self._answers, lambda: f"the registry answers: {(self._folder / 'log').read_text()[-500:]}")
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait(timeout=60)
        shutil.rmtree(self._folder)

    def _answers(self):
        try:
            return httpx.get(f"http://{self.address}/v2/", trust_env=False).status_code in (200, 401)
        except httpx.TransportError:
            return False

    def push_header(self):
        """What Docker's API wants to know about the account."""
        user, password = self.account or ("", "")
        text = json.dumps({"username": user, "password": password})
        return {"X-Registry-Auth": base64.urlsafe_b64encode(text.encode()).decode()}

    def login(self, folder):
        """A folder for `DOCKER_CONFIG`, as after `docker login`."""
        user, password = self.account
        stored = base64.b64encode(f"{user}:{password}".encode()).decode()
        (folder / "config.json").write_text(json.dumps({"auths": {self.address: {"auth": stored}}}))
        return folder

    def blobs(self):
        """The files of all layers, configurations and manifests."""
        return list((self._folder / "images").rglob("data"))
