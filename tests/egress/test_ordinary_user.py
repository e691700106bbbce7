"""The same way out for a server that an ordinary user starts, with nothing but what every user has."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from conftest import only
from data_dir import DataDir
from guest import Guest
from program import find_program
from server import Server

# A number nobody has; nothing on this host belongs to it. Not one of `../sections.sh`, which ends all of its processes.
UID = 54_396


class GuestData(DataDir):
    """A data directory of that user, with a copy of the program that he may read."""

    def __init__(self):
        super().__init__()
        self.home = Path(tempfile.mkdtemp(prefix="sandyard-guest-", dir="/var/tmp"))
        self.program = self.home / "sandyard"
        shutil.copy(find_program(), self.program)
        for path in (self.path, self.home):
            os.chown(path, UID, UID)

    def as_guest(self, *arguments):
        parts = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", "--", "env", "-i", f"HOME={self.home}"]
        return [*parts, "PATH=/usr/local/bin:/usr/bin:/bin", str(self.program), *map(str, arguments)]

    def ask(self, *arguments):
        command = self.as_guest("--data-dir", self.path, *arguments)
        return subprocess.run(command, capture_output=True, text=True, timeout=180, cwd=self.home)

    def remove(self):
        try:
            super().remove()
        finally:
            shutil.rmtree(self.home, ignore_errors=True)


class GuestServer(Server):
    """`sandyard serve` as that user."""

    def command(self):
        ports = ["--port", self.port, "--e2b-port", self.e2b_port]
        parts = self.data.as_guest("serve", "--data-dir", self.data.path, *ports, *self.flags)
        at = parts.index(str(self.data.program))
        return [*parts[:at], *(f"{name}={value}" for name, value in self.settings.items()), *parts[at:]]


@pytest.fixture(scope="module")
def guest(world):
    data = GuestData()
    try:
        authority = data.home / "authority.pem"
        shutil.copy(world.authority.path, authority)
        authority.chmod(0o644)
        settings = {**world.settings, "GATEWAY_TRUSTED_CA": str(authority)}
        with GuestServer("--ready", "0", data=data, **settings) as server:
            api = server.api()
            with Guest(api, world, network=only("good.test", "api.test")) as guest:
                yield guest
            api.close()
    finally:
        data.remove()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_it_goes_out(world, guest, scheme):
    ran = guest.curl(f"{getattr(world.good, scheme)}/echo")
    assert ran["exit_code"] == 0, ran["output"]


def test_the_policy_holds(world, guest):
    before = len(world.escaped())
    assert guest.curl(f"{world.other.http}/echo")["exit_code"] == 6
    guest.denied("not_allowed", name="other.test")
    for address in (world.own_address, "203.0.113.66", "169.254.169.254"):
        assert guest.probe("connect", address, world.evil_port.port)["outcome"] not in ("answered", "timeout")
    assert guest.probe("routes_and_rules")["outcome"] == "refused"
    assert world.escaped()[before:] == []


def test_a_rule_is_kept(world, guest):
    rules = {"api.test": [{"transform": {"headers": {"X-Team-Key": "for-the-site-alone"}}}]}
    guest.set_policy(**only("api.test"), rules=rules)
    guest.output(f"curl -sS {world.api.https}/guest")
    assert world.api.requests_for("/guest")[-1].headers["x-team-key"] == "for-the-site-alone"
