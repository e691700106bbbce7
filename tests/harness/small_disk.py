"""A small file system of its own for a data directory, so that a full disk is the test's and not the machine's."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from data_dir import DataDir
from waiting import wait_for


class SmallDisk:
    """An ext4 of `size_mib` on a loop device, mounted while the value is in use: `with SmallDisk(3072) as disk`.

    `disk.data` is a data directory on it. `fill` takes space as another program of the host would, `free` gives it back.
    """

    def __init__(self, size_mib, kind="ext4"):
        self.size_mib, self.kind = size_mib, kind
        self._image = None

    def __enter__(self):
        self.path = Path(tempfile.mkdtemp(prefix="sandyard-test-disk-", dir="/var/tmp"))
        try:
            if self.kind == "tmpfs":
                _run("mount", "-t", "tmpfs", "-o", f"size={self.size_mib}m,mode=700", "tmpfs", self.path)
            else:
                self._image = Path(f"{self.path}.img")
                with self._image.open("wb") as image:
                    image.truncate(self.size_mib << 20)
                # No blocks that only root may use: everything here runs as root.
                _run("mkfs.ext4", "-q", "-F", "-m0", self._image)
                _run("mount", "-o", "loop", self._image, self.path)
            self.data = DataDir(self.path / "data")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.free()
        wait_for(self._unmount, lambda: f"{self.path} can be unmounted", 60)
        shutil.rmtree(self.path, ignore_errors=True)
        if self._image:
            self._image.unlink(missing_ok=True)

    def _unmount(self):
        return not os.path.ismount(self.path) or subprocess.run(["umount", self.path], capture_output=True).returncode == 0

    def reattach(self):
        """Takes the file system away under its users and mounts it anew, as after a device that failed came back."""
        _run("umount", "--lazy", self.path)
        # A loop device of its own: `mount` would take the old one again, whose file system is still there for who has it open.
        attach = ["losetup", "--find", "--show", self._image]
        device = subprocess.run(attach, check=True, capture_output=True, text=True).stdout.strip()
        _run("mount", device, self.path)
        # Detached when it is unmounted.
        _run("losetup", "--detach", device)

    @property
    def free_bytes(self):
        stat = os.statvfs(self.path)
        return stat.f_bavail * stat.f_frsize

    def fill(self, leave_bytes=0):
        """Takes all space but `leave_bytes`, at once."""
        take = self.free_bytes - leave_bytes
        if take <= 0:
            return
        with (self.path / "ballast").open("ab") as ballast:
            size = os.fstat(ballast.fileno()).st_size
            while take > 0:
                try:
                    os.posix_fallocate(ballast.fileno(), size, take)
                    return
                except OSError:
                    # Others take space too, and a file system needs some for its own lists of blocks.
                    take -= max(4096, take // 64)

    def free(self):
        """Gives back what `fill` took."""
        (self.path / "ballast").unlink(missing_ok=True)


def _run(*command):
    subprocess.run([str(part) for part in command], check=True)
