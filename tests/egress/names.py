"""A name server of this host with answers that tests write, and a memory of every question."""

import ipaddress
import socket
import struct
import threading

from ports import free_port

A, AAAA = 1, 28
_NO_ERROR, _NO_SUCH_NAME = 0, 3


class Names:
    """Answers over UDP and TCP at one loopback address. What it has no entry for does not exist."""

    def __init__(self, address="127.0.0.1", port=None):
        self.request_log = []
        self._entries = {}
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        # Not one that the kernel picks for datagrams: a connection of somebody else's may have the same one.
        self._udp.bind((address, port or free_port()))
        self.address, self.port = self._udp.getsockname()
        self._tcp = socket.create_server((address, self.port))
        self.authority = f"{self.address}:{self.port}"

    def set(self, name, *addresses):
        """Lets a name stand for these addresses, all of them in every answer."""
        self._entries[name] = [addresses]

    def set_in_turn(self, name, *addresses):
        """Lets a name stand for one address after another: each look-up gets the next, and the last one stays."""
        self._entries[name] = [(address,) for address in addresses]

    def remove(self, name):
        self._entries.pop(name, None)

    def addresses(self, name):
        """What a name stands for now, without using up a turn."""
        return list(self._entries.get(name, [()])[0])

    def was_asked(self, part):
        """Every question with this text in its name."""
        return [name for name, _ in self.request_log if part in name]

    # --- life

    def __enter__(self):
        for serve in (self._serve_udp, self._serve_tcp):
            threading.Thread(target=serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        for listener in (self._udp, self._tcp):
            # A thread that waits in a system call does not notice a close; it does notice this.
            _quietly(lambda listener=listener: listener.shutdown(socket.SHUT_RDWR))
            listener.close()

    def _serve_udp(self):
        while True:
            try:
                query, peer = self._udp.recvfrom(4096)
            except OSError:
                return
            if query:
                _quietly(lambda: self._udp.sendto(self._answer(query), peer))

    def _serve_tcp(self):
        while True:
            try:
                connection, _ = self._tcp.accept()
            except OSError:
                return
            threading.Thread(target=self._serve_connection, args=[connection], daemon=True).start()

    def _serve_connection(self, connection):
        with connection, connection.makefile("rb") as reader:
            while len(size := reader.read(2)) == 2:
                answer = self._answer(reader.read(struct.unpack(">H", size)[0]))
                connection.sendall(struct.pack(">H", len(answer)) + answer)

    # --- messages (RFC 1035)

    def _answer(self, query):
        number, _ = struct.unpack(">HH", query[:4])
        name, end = _read_name(query)
        kind = struct.unpack(">H", query[end : end + 2])[0]
        question = query[12 : end + 4]
        self.request_log.append((name, kind))
        turns = self._entries.get(name)
        if turns is None:
            return struct.pack(">HHHHHH", number, 0x8580 | _NO_SUCH_NAME, 1, 0, 0, 0) + question
        # Only look-ups of an IPv4 address use up a turn: a client may or may not ask for the other family as well.
        addresses = turns.pop(0) if kind == A and len(turns) > 1 else turns[0]
        found = [ipaddress.ip_address(address) for address in addresses]
        records = [one.packed for one in found if one.version == {A: 4, AAAA: 6}.get(kind)]
        # Nobody may remember an answer: what a test writes next counts at once.
        body = b"".join(struct.pack(">HHHIH", 0xC00C, kind, 1, 0, len(packed)) + packed for packed in records)
        return struct.pack(">HHHHHH", number, 0x8580 | _NO_ERROR, 1, len(records), 0, 0) + question + body


def _read_name(message):
    """The question's name in lower case, and where it ends."""
    labels, at = [], 12
    while size := message[at]:
        labels.append(message[at + 1 : at + 1 + size].decode(errors="replace").lower())
        at += 1 + size
    return ".".join(labels), at + 1


def _quietly(work):
    try:
        work()
    except OSError:
        pass
