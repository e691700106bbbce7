"""Package managers with this host's own settings: if it can reach a registry, so must a sandbox."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

# Variables that say where a registry is and whom to trust. Local folders of packages are left out: they would be no test.
_PREFIXES = ("PIP_INDEX", "PIP_EXTRA_INDEX", "PIP_CERT", "PIP_TRUSTED", "PIP_DEFAULT_TIMEOUT", "npm_config_", "NPM_CONFIG_")
_NAMES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
_PROXIES = ("HTTPS_PROXY", "ALL_PROXY")
# From where to where: a sandbox has an /etc/pip.conf of its own, and pip reads both.
_FILES = {"/etc/pip.conf": "/etc/xdg/pip/pip.conf", "~/.config/pip/pip.conf": "~/.config/pip/pip.conf", "~/.npmrc": "~/.npmrc"}
_HOMES = ("/home/user", "/root")
# Where the commands below work, inside.
_PLACE = "/tmp/place"


def proxy_settings():
    """The host's proxies as settings of a server: from the environment, where a gateway looks for them as well."""
    found = [os.environ.get(name) or os.environ.get(name.lower()) for name in _PROXIES]
    return next(({"GATEWAY_PROXY": url} for url in found if url), {})


def variables():
    return {name: value for name, value in os.environ.items() if name.startswith(_PREFIXES) or name in _NAMES}


def copy_settings(guest):
    """Puts files that settings name where they are on the host, so that the settings mean the same inside."""
    by_name = {value for value in variables().values() if Path(value).is_file()}
    for path in sorted(by_name):
        _copy(guest, path, path)
    for name, target in _FILES.items():
        source = Path(name).expanduser()
        if source.is_file():
            for home in _HOMES:
                _copy(guest, source, target.replace("~", home))
    guest.output(["mkdir", "-m", "777", _PLACE], user="root")


def _copy(guest, source, target):
    text = Path(source).read_text(errors="replace")
    guest.api.write(guest.id, "/tmp/copied", text)
    folder = os.path.dirname(target)
    guest.output(f"mkdir -p {folder} && install -m 644 /tmp/copied {target}", user="root")


def run(guest, command, **options):
    """Runs a command inside. When it fails, says whether this host itself would have succeeded."""
    ran = guest.run(command.format(place=_PLACE), env=variables(), timeout=240, **options)
    if ran["exit_code"] == 0:
        return
    with tempfile.TemporaryDirectory(prefix="sandyard-egress-", dir="/var/tmp") as place:
        here = subprocess.run(["bash", "-c", command.format(place=place)], capture_output=True, text=True, timeout=240)
    if here.returncode != 0:
        pytest.fail(f"this host itself cannot reach the registry, so nothing was tested:\n{here.stderr[-1500:]}")
    pytest.fail(f"it works on this host but not in a sandbox:\n{ran['output'][-3000:]}")


def apt_options(guest):
    """Options that let apt-get work in folders of its own, with this host's source of Debian or Ubuntu packages."""
    sources = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
    names = ("sources.list", "debian.sources", "ubuntu.sources")
    found = [path for path in sources if path.name in names and path.is_file() and path.read_text().strip()]
    assert found, "this host has no source of packages: neither sources.list nor debian.sources"
    _copy(guest, found[0], str(found[0]))
    settings = {
        "Dir::Etc::SourceList": found[0],
        "Dir::Etc::SourceParts": "/nonexistent",
        "Dir::State::Lists": "{place}/lists",
        "Dir::State::status": "/dev/null",
        "Dir::Cache": "{place}",
        "Dir::Cache::archives": "{place}/archives",
        "Acquire::Languages": "none",
        "APT::Sandbox::User": "root",
        "Acquire::Retries": 3,
    }
    return " ".join(f"-o {name}={value}" for name, value in settings.items())
