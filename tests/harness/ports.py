"""Ports for servers of the tests."""

import os
import socket


def free_port():
    """A port nobody listens on. Below the range the kernel hands out for outgoing connections, so it stays free."""
    for port in range(20_000 + os.getpid() % 10_000, 32_000):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            if port not in _handed_out:
                _handed_out.add(port)
                return port
    raise RuntimeError("no free port")


_handed_out = set()
