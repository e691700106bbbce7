"""Older generations of the SDK, each in an environment of its own that is kept from run to run.

They know a domain and nothing else, so they are driven over TLS, with names that a name server of the tests knows.
"""

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mode import InDomain
from resolver import WildcardNames
from server import Server
from tenants import Tenant

# With a server and names of its own, whatever the mode of the others.
pytestmark = pytest.mark.plain

DOMAIN = "old.test"
VERSIONS = ("2.5.0", "2.6.4", "2.8.1")

# From this one on a URL is enough.
FIRST_WITH_URL = "2.8.1"

EXPECTED = {
    "run": "value\n",
    "read": "written",
    "listed": ["a.txt"],
    "connected": "written",
    "background": "background\n",
    "pages": True,
    "metadata": {"by": "old"},
    "resumed": "written",
    "running": True,
    "killed": True,
    "gone": True,
}


def environment_of(version):
    """The Python of an environment with that version."""
    checkout = Path(__file__).resolve().parents[2]
    target = Path(os.environ.get("CARGO_TARGET_DIR", checkout / "target"))
    folder = target / "venvs" / f"e2b-{version}"
    python = folder / "bin" / "python"
    check = [python, "-c", f"import importlib.metadata as m; assert m.version('e2b') == '{version}'; import e2b"]
    # This suite may run beside itself, with another provider: they take turns.
    with folder.with_name(f"{folder.name}.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not python.exists() or subprocess.run(check, capture_output=True).returncode != 0:
            subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
            install = [folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", f"e2b=={version}"]
            subprocess.run(install, check=True)
    return python


@pytest.fixture(scope="session")
def in_domain():
    """What the environment of a program must hold for a server with a domain, and the names below it."""
    domain_mode = InDomain(DOMAIN)
    with WildcardNames(DOMAIN) as names, Server(*domain_mode.flags, "--ready", "0") as server:
        yield names, domain_mode.variables(server, Tenant(server, "old").key)


def drive(command, variables):
    """Runs the driver; returns what it saw."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("E2B_")}
    done = subprocess.run(command, env={**plain, **variables}, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


def driver(version):
    return [environment_of(version), Path(__file__).parent / "old_driver.py"]


# The first time, pip has to fetch the SDK.
@pytest.mark.timeout(800)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_whole_life_in_a_domain(version, in_domain):
    names, variables = in_domain
    assert drive(names.command(driver(version)), variables) == {"sync": EXPECTED, "async": EXPECTED}


@pytest.mark.timeout(800)
def test_a_whole_life_by_urls(pointed):
    assert drive(driver(FIRST_WITH_URL), pointed) == {"sync": EXPECTED, "async": EXPECTED}
