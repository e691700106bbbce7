"""Ports for servers of the tests."""

import itertools
import os
import socket
import threading

# Below the range the kernel hands out for outgoing connections, so that a port stays free until it is used.
_FIRST, _LAST = 20_000, 32_000
# Ports are had in blocks, each of one process at a time. Tests run beside each other, and a port that is free now may be one
# that another test was just told, or that its server had until a moment ago and will have again.
_BLOCK = 50


def free_port():
    """A port nobody listens on, and which no other process of the tests is told while this one runs."""
    with _turn:
        for port in _ports:
            if _is_free(port):
                return port
    raise RuntimeError("no free port")


def _is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _all_ports():
    """Every port once, block by block as far as they can be had."""
    blocks = range(_FIRST, _LAST, _BLOCK)
    begin = os.getpid() % len(blocks)
    for first in itertools.chain(blocks[begin:], blocks[:begin]):
        if _reserve_block(first):
            yield from range(first, first + _BLOCK)


def _reserve_block(first):
    """Whether a block is ours from now on, until this process ends: its mark is a name that one socket can have."""
    mark = socket.socket(socket.AF_UNIX)
    try:
        mark.bind(f"\0sandyard-test-ports-{first}")
    except OSError:
        mark.close()
        return False
    _marks.append(mark)
    return True


_turn = threading.Lock()
_marks = []
_ports = _all_ports()
