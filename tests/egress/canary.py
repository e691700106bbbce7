"""Listeners that nothing may ever reach."""

import socket
import threading

from ports import free_port


class Canary:
    """Takes connections and datagrams at one address and port, and remembers each."""

    def __init__(self, address, port=None):
        # Not one that the kernel picks: somebody else may have the same one for datagrams.
        port = port or free_port()
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.seen = []
        self._tcp = socket.create_server((address, port), family=family)
        self.address, self.port = self._tcp.getsockname()[:2]
        self._udp = socket.socket(family, socket.SOCK_DGRAM)
        self._udp.bind((address, self.port))

    def __enter__(self):
        threading.Thread(target=self._take_connections, daemon=True).start()
        threading.Thread(target=self._take_datagrams, daemon=True).start()
        return self

    def __exit__(self, *_):
        for listener in (self._tcp, self._udp):
            try:
                listener.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            listener.close()

    def _take_connections(self):
        while True:
            try:
                connection, peer = self._tcp.accept()
            except OSError:
                return
            self.seen.append(("tcp", peer))
            # One that says nothing must not hold up the others.
            threading.Thread(target=self._answer, args=[connection], daemon=True).start()

    def _answer(self, connection):
        with connection:
            connection.settimeout(60)
            try:
                self.seen.append(("tcp", connection.recv(4096)))
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nescaped")
            except OSError:
                pass

    def _take_datagrams(self):
        while True:
            try:
                data, peer = self._udp.recvfrom(4096)
            except OSError:
                return
            if data:
                self.seen.append(("udp", data))
                self._udp.sendto(b"escaped", peer)
