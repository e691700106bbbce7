"""Runs the suite of the JavaScript SDK against servers of its own: first in plain HTTP, then with a domain and TLS.

    run.py NODE_MODULES

Prints what Node's test runner prints (TAP); fails when it does.
"""

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "harness"))

from node import NODE  # noqa: E402
from program import environment  # noqa: E402
from resolver import WildcardNames  # noqa: E402
from server import Server  # noqa: E402

DOMAIN = "sbx.test"
SUITE = Path(__file__).parent


def main():
    modules = Path(sys.argv[1]).resolve()
    with Server(AUTH_MODE="required") as server:
        plain = run(modules, [], **url_variables(server))
    with Server("--tls-self-signed", "--domain", DOMAIN, AUTH_MODE="required") as server, WildcardNames(DOMAIN) as names:
        with_domain = run(modules, names.command([]), **domain_variables(server))
    sys.exit(plain or with_domain)


def url_variables(server):
    """Three variables, and a fourth for the contents of volumes."""
    return {name: server.e2b_url for name in ("E2B_API_URL", "E2B_SANDBOX_URL", "E2B_VOLUME_API_URL")} | key(server)


def domain_variables(server):
    return {"E2B_DOMAIN": f"{DOMAIN}:{server.port}", "NODE_EXTRA_CA_CERTS": str(server.certificate)} | key(server)


def key(server):
    return {"E2B_API_KEY": server.admin_key}


def run(modules, before, **variables):
    print(f"# {', '.join(sorted(variables))}", flush=True)
    # Node looks for packages beside the files that want them.
    link = SUITE / "node_modules"
    link.unlink(missing_ok=True)
    link.symlink_to(modules)
    try:
        command = [*before, str(NODE), "--test", "--test-reporter=tap", str(SUITE / "all.test.mjs")]
        return subprocess.run(command, env=environment() | {"PATH": os.environ["PATH"]} | variables).returncode
    finally:
        link.unlink()


main()
