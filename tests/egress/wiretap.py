"""Everything that passes the interfaces of this host, loopback among them; packet(7)."""

import select
import socket
import threading

_EVERY_PROTOCOL = 0x0003
# SO_RCVBUFFORCE: past what the host allows everybody; socket(7).
_RECEIVE_BUFFER_FORCE = 33


class Wiretap:
    """Looks for byte strings in all packets while it is open."""

    def __init__(self, *patterns):
        self._patterns = patterns
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
        self._is_over.set()
        self._thread.join()
        self._socket.close()

    def _listen(self):
        while not self._is_over.is_set() or self._has_more(0):
            if self._has_more(0.1):
                packet = self._socket.recv(65_536)
                self.seen += [pattern for pattern in self._patterns if pattern in packet]

    def _has_more(self, seconds):
        return bool(select.select([self._socket], [], [], seconds)[0])
