"""A server whose sandboxes are on a small disk and whose database is not: what happens to sandboxes, and nothing else."""

import hashlib
import subprocess
import tempfile
from contextlib import contextmanager

from server import Server
from small_disk import SmallDisk
from waiting import wait_for

MIB = 1 << 20


@contextmanager
def small_server(size_mib=3072, **settings):
    """Yields the disk, the server and a caller of it."""
    with tempfile.TemporaryDirectory(prefix="sandyard-test-", dir="/var/tmp") as remote, SmallDisk(size_mib) as disk:
        server = Server(data=disk.data, DATABASE_URL=f"sqlite:{remote}/sandyard.db", **settings)
        try:
            with server:
                api = server.api()
                yield disk, server, api
                api.close()
        finally:
            disk.free()
            disk.data.remove()


def start_watching(disk):
    """Waits until the launcher has put the reserve file there: from then on it watches the disk."""
    wait_for(lambda: (disk.data.path / "reserve").exists(), "the launcher makes its reserve file")


def image_of(disk, api, sandbox):
    """The disk image of a sandbox."""
    provider_id = api.ok("GET", f"/sandboxes/{sandbox}/status")["provider_sandbox_id"]
    return disk.data.path / "sandboxes" / provider_id / "disk.img"


def errors_of(image):
    """What ext4 says of an image: empty if it never found an error."""
    text = subprocess.run(["dumpe2fs", "-h", image], capture_output=True, text=True, check=True).stdout
    state = next(line for line in text.splitlines() if line.startswith("Filesystem state:"))
    return "" if state.split(":")[1].strip() == "clean" else text


def checksum(seed, mib):
    """What `WRITE` below says of the same seed and size."""
    return hashlib.sha256(b"".join(block(seed, number) for number in range(mib))).hexdigest()


def block(seed, number):
    return hashlib.sha256(f"{seed} {number}".encode()).digest() * (MIB // 32)
