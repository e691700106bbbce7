"""Servers that come from a repository: cloned, installed by a command of the user's, started by another."""

import re
import subprocess
from pathlib import Path

from .catalog import Launch, Unusable

PREFIX = "github/"
_PLACE = Path("/opt/mcp-gateway/checkouts")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9._-]+")


def fetch(name, settings):
    """Clones and installs; gives how to start it."""
    repository = name.removeprefix(PREFIX)
    if not _NAME.fullmatch(repository) or ".." in repository:
        raise Unusable(f"`{name}` is not of the form github/owner/name")
    run = settings.get("runCmd") or settings.get("run_cmd")
    install = settings.get("installCmd") or settings.get("install_cmd")
    if not isinstance(run, str):
        raise Unusable(f"`{name}` needs `runCmd`: the command that starts a server on its standard input and output")
    folder = _PLACE / repository.replace("/", "--")
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        url = f"https://github.com/{repository}"
        _run(["git", "clone", "--quiet", "--depth", "1", url, str(folder)], None, f"cloning {url}")
    if install:
        _run(["bash", "-lc", install], folder, f"installing `{name}` with `{install}`")
    env = {key: str(value) for key, value in (settings.get("envs") or {}).items()}
    return Launch("bash", ["-lc", run], env, str(folder))


def _run(command, folder, operation):
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        last = (done.stderr or done.stdout).strip().splitlines()[-5:]
        raise Unusable(f"{operation} failed with {done.returncode}: " + "\n".join(last))
