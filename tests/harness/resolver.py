"""Wildcard names for clients of a test: `*.sbx.test` is this host, for the programs of the test only.

A name server answers on a loopback address of its own, and a command runs in a mount namespace where `/etc/resolv.conf`
names that server. Nothing of the host changes, and all of it is gone when the command ends. Needs root.

For a whole suite, in the line that starts it:

    python tests/harness/resolver.py sbx.test -- python -m pytest tests/e2b

For one program of a test, such as a script that uses an SDK:

    with WildcardNames("sbx.test") as names:
        subprocess.run(names.command(["node", "client.mjs"]), check=True)

Names that are not below the domain are asked of the host's own name servers.
"""

import itertools
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

_A, _AAAA, _IN = 1, 28, 1
_NO_ERROR, _FAILED = 0, 2
_TIMEOUT = 5.0
# Seconds a client may keep an answer.
_LIFE = 5

# $0 is the folder with the files that are laid over those in /etc.
_ENTER = """
mount --bind "$0/resolv.conf" "$(readlink -f /etc/resolv.conf)" &&
mount --bind "$0/nsswitch.conf" /etc/nsswitch.conf &&
exec "$@"
"""


class WildcardNames:
    """A name server for a domain and all names below it, and the way to run programs under it."""

    def __init__(self, domain, address="127.0.0.1"):
        self.domain = domain.rstrip(".").lower()
        self.address = address
        self._upstream = _name_servers()
        self._udp, self._tcp = _listen()
        self.server = self._udp.getsockname()[0]
        self._folder = tempfile.TemporaryDirectory(prefix="sandyard-names-")
        folder = Path(self._folder.name)
        # Names that cannot be asked of anybody else fail fast.
        (folder / "resolv.conf").write_text(f"nameserver {self.server}\noptions timeout:10 attempts:3\n")
        # systemd-resolved and the like would not look at `resolv.conf`.
        (folder / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n")

    def __enter__(self):
        for work in (self._serve_udp, self._serve_tcp):
            threading.Thread(target=work, daemon=True).start()
        return self

    def __exit__(self, *_):
        # A thread that waits on a socket is not woken by its close.
        self._tcp.shutdown(socket.SHUT_RDWR)
        self._tcp.close()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
            end.sendto(b"", (self.server, 53))
        self._folder.cleanup()

    def command(self, command):
        """The command line that runs `command` where the names can be looked up."""
        inside = ["sh", "-c", _ENTER, self._folder.name, *map(str, command)]
        return ["unshare", "--mount", "--propagation", "private", *inside]

    # --- the name server

    def _serve_udp(self):
        while True:
            query, client = self._udp.recvfrom(4096)
            if not query:
                self._udp.close()
                return
            # A query that goes further must not hold up the others.
            threading.Thread(target=self._reply_udp, args=(query, client), daemon=True).start()

    def _reply_udp(self, query, client):
        try:
            self._udp.sendto(self.answer(query), client)
        except OSError:
            pass  # The client asks again, or has gone with the test.

    def _serve_tcp(self):
        while True:
            try:
                connection, _ = self._tcp.accept()
            except OSError:
                return
            threading.Thread(target=self._reply_tcp, args=(connection,), daemon=True).start()

    def _reply_tcp(self, connection):
        with connection:
            connection.settimeout(_TIMEOUT)
            try:
                reply = self.answer(_read_framed(connection))
                connection.sendall(struct.pack("!H", len(reply)) + reply)
            except (OSError, EOFError):
                pass

    def answer(self, query):
        """The reply to a query, both as RFC 1035 writes them."""
        name, end = _name(query, 12)
        kind, _ = struct.unpack_from("!HH", query, end)
        if name != self.domain and not name.endswith("." + self.domain):
            return self._ask_others(query, end + 4)
        records = [socket.inet_aton(self.address)] if kind == _A else []
        return _reply(query, end + 4, _NO_ERROR, records)

    def _ask_others(self, query, end):
        for server in self._upstream:
            with socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM) as request_log:
                request_log.settimeout(_TIMEOUT)
                try:
                    request_log.connect((server, 53))
                    request_log.send(query)
                    return request_log.recv(65_535)
                except OSError:
                    continue
        return _reply(query, end, _FAILED, [])


def _reply(query, end, code, addresses):
    """A reply with the query's question and these addresses."""
    flags = 0x8180 | code  # An answer, recursion wanted and given.
    header = query[:2] + struct.pack("!HHHHH", flags, 1, len(addresses), 0, 0)
    # 0xc00c: the name in the question.
    records = (struct.pack("!HHHIH", 0xC00C, _A, _IN, _LIFE, len(data)) + data for data in addresses)
    return header + query[12:end] + b"".join(records)


def _name(query, at):
    """A name without pointers, which questions have none of, and where it ends."""
    labels = []
    while length := query[at]:
        labels.append(query[at + 1 : at + 1 + length].decode("ascii", "replace").lower())
        at += 1 + length
    return ".".join(labels), at + 1


def _read_framed(connection):
    with connection.makefile("rb") as stream:
        (length,) = struct.unpack("!H", _exactly(stream, 2))
        return _exactly(stream, length)


def _exactly(stream, length):
    read = stream.read(length)
    if len(read) < length:
        raise EOFError("the client hung up")
    return read


def _name_servers():
    parts = (line.split() for line in Path("/etc/resolv.conf").read_text().splitlines())
    return [line[1] for line in parts if len(line) > 1 and line[0] == "nameserver"]


def _listen():
    """Sockets on port 53 of a loopback address that nobody uses: `resolv.conf` cannot name another port."""
    for last in itertools.chain(range(os.getpid() % 250 + 2, 254), range(2, 254)):
        address = (f"127.83.89.{last}", 53)
        udp, tcp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.socket()
        tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            udp.bind(address)
            tcp.bind(address)
            tcp.listen()
            return udp, tcp
        except PermissionError:
            raise
        except OSError:
            udp.close()
            tcp.close()
    raise RuntimeError("no loopback address with a free port 53")


def main(arguments):
    """Runs a command with wildcard names: DOMAIN -- COMMAND…"""
    domain, dashes, *command = arguments
    assert dashes == "--" and command, main.__doc__
    with WildcardNames(domain) as names:
        return subprocess.run(names.command(command)).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
