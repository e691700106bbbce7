"""Ports of sandboxes, opened from outside by the host the SDK's `get_host` names."""

from pathlib import Path

import mode
from waiting import wait_for

SITE = (Path(__file__).parents[1] / "contracts" / "sandbox_site.py").read_text()
PORT = 3000
TOKEN = "e2b-traffic-access-token"


def start_site(sandbox, port=PORT):
    """Runs a web site in a sandbox that says what it was asked, and waits until it listens."""
    sandbox.files.write("/home/user/site.py", SITE)
    sandbox.commands.run(f"exec python3 /home/user/site.py {port}", background=True, timeout=0)
    probe = f"python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 10)' 2>/dev/null && echo up || true"
    wait_for(lambda: sandbox.commands.run(probe).stdout, "the site listens")


def get(server, sandbox, path="/", port=PORT, **headers):
    """Opens a port of a sandbox."""
    return mode.current.get(server, sandbox.get_host(port), path, headers)
