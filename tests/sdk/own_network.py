"""A network that the tests share with nobody.

The SDK's debug mode knows one port only. On the host's loopback any connection of another program may have it for its own end.
"""

import ctypes
import os
import subprocess

# CLONE_NEWNET, unshare(2).
_NEW_NETWORK = 0x40000000


def enter():
    """Puts this program, and what it starts from now on, into a network of its own with nothing but loopback. Needs root."""
    if ctypes.CDLL(None, use_errno=True).unshare(_NEW_NETWORK) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "unshare")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
