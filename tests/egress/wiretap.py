"""Everything that passes the interfaces of this host, loopback among them; packet(7)."""

import select
import socket
import threading
import time

_EVERY_PROTOCOL = 0x0003
# SO_RCVBUFFORCE: past what the host allows everybody; socket(7).
_RECEIVE_BUFFER_FORCE = 33
# Seconds in which any buffer is read.
_READ_ON = 20


class Wiretap:
    """Looks for byte strings in all packets while it is open, and for packets to or from addresses.

    An address is looked for where packets have theirs: four bytes may well be part of what other tests send each other.
    """

    def __init__(self, *patterns, addresses=()):
        self._patterns = patterns
        self._addresses = {socket.inet_pton(socket.AF_INET6 if ":" in one else socket.AF_INET, one) for one in addresses}
        self.seen = []
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_EVERY_PROTOCOL))
        # A burst must not be lost because this thread was late.
        self._socket.setsockopt(socket.SOL_SOCKET, _RECEIVE_BUFFER_FORCE, 1 << 26)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over_at = time.monotonic()
        self._is_over.set()
        self._thread.join()
        self._socket.close()

    def _listen(self):
        # What came in time waits to be read; what other tests send goes on for ever.
        while not self._is_over.is_set() or (self._has_more(0) and time.monotonic() < self._over_at + _READ_ON):
            if self._has_more(0.1):
                packet = self._socket.recv(65_536)
                self.seen += [pattern for pattern in self._patterns if pattern in packet]
                self.seen += [address for address in _ends(packet) if address in self._addresses]

    def _has_more(self, seconds):
        return bool(select.select([self._socket], [], [], seconds)[0])


def _ends(packet):
    """Where a packet comes from and where it goes; RFC 791, RFC 8200."""
    if packet[:1] and packet[0] >> 4 == 4:
        return packet[12:16], packet[16:20]
    if packet[:1] and packet[0] >> 4 == 6:
        return packet[8:24], packet[24:40]
    return ()
