"""Everything a sandbox may want to reach: a name server, web sites and canaries, all on loopback addresses of this host."""

import hashlib
import json
import shutil
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path

from authority import Authority
from canary import Canary
from echoes import Echoes
from git_http import make_repository
from names import Names
from ports import free_port
from sites import PIECE, Site

# Loopback addresses are closed to sandboxes. Those of these sites are opened by the operator, so that for them only the
# sandbox's policy decides, as for any address of the internet.
_SITES = {"good": "127.0.0.11", "other": "127.0.0.12", "api": "127.0.0.13", "evil": "127.0.0.66"}


def own_addresses():
    """The addresses of this host's interfaces, save loopback; those of IPv4 first."""
    links = json.loads(subprocess.run(["ip", "-json", "address"], capture_output=True, check=True).stdout)
    found = [entry["local"] for link in links for entry in link["addr_info"] if entry["scope"] == "global"]
    assert found, "this host has no address but loopback"
    return sorted(found, key=lambda address: ":" in address)


def authority(host, port):
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class World:
    """`good`, `other` and `api` are used by tests as they like; nobody is ever allowed to reach `evil`.

    `inner` and `inner6` are services of this host that no operator has opened; the name `inner.test` leads there.
    """

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="sandyard-egress-", dir="/var/tmp"))
        self.authority = Authority(self.folder)
        self.names = Names()
        self.ports = free_port(), free_port()
        for name, address in _SITES.items():
            setattr(self, name, Site(f"{name}.test", address, self.ports, self.authority))
            self.names.set(f"{name}.test", address)
        # The same port as the sites, so that a name which moves there meets somebody.
        self.inner = Canary("127.0.0.1", self.ports[0])
        self.inner6 = Canary("::1", self.ports[0])
        self.names.set("inner.test", "127.0.0.1", "::1")
        # By address, programs inside reach only what is not loopback, which there is their own. Both canaries are opened as the
        # sites are, so that for bare addresses and datagrams, too, only the policy decides; nobody may ever reach `evil_port`.
        self.own_address = own_addresses()[0]
        self.evil_port, self.near_port = Canary(self.own_address), Canary(self.own_address)
        self.echoes = Echoes(self.good.address, free_port())
        # Opened, and nobody listens there.
        self.closed_port = free_port()
        repositories = self.folder / "repositories"
        repositories.mkdir()
        make_repository(repositories, "small.git")
        for site in self.sites:
            site.repositories = repositories
            site.resolve = self.resolve

    @property
    def sites(self):
        return [getattr(self, name) for name in _SITES]

    def resolve(self, name):
        """The first address of a name of this world."""
        return next(iter(self.names.addresses(name)), None)

    @staticmethod
    def digest(size):
        """SHA-256 of what `/bytes/SIZE` of every site gives."""
        whole, rest = divmod(size, len(PIECE))
        digest = hashlib.sha256()
        for _ in range(whole):
            digest.update(PIECE)
        digest.update(PIECE[:rest])
        return digest.hexdigest()

    @property
    def reachable(self):
        """What the operator opens."""
        more = [(self.echoes.address, self.echoes.port), (self.good.address, self.closed_port)]
        more += [(canary.address, canary.port) for canary in (self.evil_port, self.near_port)]
        return [target for site in self.sites for target in site.targets] + [authority(*one) for one in more]

    @property
    def settings(self):
        """Settings of a server that can reach this world."""
        return {
            "GATEWAY_REACHABLE": ",".join(self.reachable),
            "GATEWAY_NAMESERVERS": self.names.authority,
            "GATEWAY_TRUSTED_CA": str(self.authority.path),
            "LIMITS_SANDBOXES_PER_USER": 0,
        }

    def escaped(self):
        """Whatever came where nothing may come."""
        evil = [*self.evil.connections, *self.evil_port.seen]
        return [*evil, *self.inner.seen, *self.inner6.seen]

    def __enter__(self):
        with ExitStack() as stack:
            stack.callback(self._remove)
            for part in (self.names, *self.sites, self.inner, self.inner6, self.evil_port, self.near_port, self.echoes):
                stack.enter_context(part)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        self._stack.__exit__(*error)

    def _remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)
