"""Faults of disks: full, read-only, slow, and devices that fail. All on file systems that the test made."""

import fcntl
import os
import struct
import subprocess
from pathlib import Path

from fault import Fault
from small_disk import SmallDisk

# include/uapi/linux/ext4.h: EXT4_IOC_SHUTDOWN with EXT4_GOING_FLAGS_DEFAULT, which writes out everything first. From then on all I/O
# of the file system fails, as that of a device that was pulled out.
EXT4_IOC_SHUTDOWN = 0x8004587D
EVERYTHING_WRITTEN = struct.pack("I", 0)


class DataDiskFull(Fault):
    """Another program of the host takes all space of the data directory's disk."""

    cause = r"(?i)disk.*full|full.*disk|free in"

    def set_up(self, stack):
        self.disk = stack.enter_context(SmallDisk(4096))
        server = self.make_server(data=self.disk.data)
        stack.callback(self.disk.data.remove)
        return stack.enter_context(server)

    def inject(self, verb):
        self.disk.fill()

    def heal(self, verb):
        self.disk.free()


class DataDirectoryReadOnly(DataDiskFull):
    """Nothing can be made, renamed, removed or written in the data directory. The immutable flag does to a tree in use what a remount
    refuses to do while files are open."""

    cause = r"(?i)database|read-only|not permitted"

    def inject(self, verb):
        self._chattr("+i")

    def heal(self, verb):
        self._chattr("-i")

    def _chattr(self, change):
        root = self.disk.data.path
        # Not SQLite's shared memory: the kernel ends a process that writes to a mapping it can no longer write back (docs/faults.md).
        inside = (path for path in root.iterdir() if not path.is_symlink() and not path.name.endswith("-shm"))
        locations = [root, *inside]
        subprocess.run(["chattr", change, *(path for path in locations if path.is_file() or path.is_dir())], check=True)


class SlowDisk(DataDiskFull):
    """The data disk takes no write for two seconds; every request must outlast that."""

    cause = None

    def strike(self, verb):
        thaw = subprocess.Popen(
            ["sh", "-c", f"fsfreeze --freeze {self.disk.path} && sleep 2; fsfreeze --unfreeze {self.disk.path}"]
        )
        try:
            return super().strike(verb)
        finally:
            thaw.wait(timeout=120)

    def inject(self, verb):
        pass

    def heal(self, verb):
        pass


class DatabaseDeviceLost(Fault):
    """The device of the database fails every access, and comes back."""

    cause = r"(?i)database"

    def set_up(self, stack):
        self.disk = stack.enter_context(SmallDisk(256))
        return stack.enter_context(self.make_server(variables={"DATABASE_URL": f"sqlite://{self.disk.path}/rows.db"}))

    def inject(self, verb):
        shut_down(self.disk.path)

    def heal(self, verb):
        self.disk.reattach()


class SandboxDeviceLost(Fault):
    """The device of one sandbox's disk fails every access until the sandbox is started anew."""

    def inject(self, verb):
        location = self.server.data.path / "device"
        location.mkdir(exist_ok=True)
        device = device_of(self.server, verb.cell.provider_id(verb.sandbox))
        # The same file system once more: the sandbox's own mount is in no namespace that can be named.
        subprocess.run(["mount", device, location], check=True)
        try:
            shut_down(location)
        finally:
            subprocess.run(["umount", location], check=True)

    def heal(self, verb):
        if not verb.is_deleting:
            verb.cell.until_ok(lambda: verb.api.post(f"/sandboxes/{verb.sandbox}/stop"))


def shut_down(location):
    folder = os.open(location, os.O_RDONLY)
    try:
        fcntl.ioctl(folder, EXT4_IOC_SHUTDOWN, EVERYTHING_WRITTEN)
    finally:
        os.close(folder)


def device_of(server, instance):
    """The loop device that a sandbox's disk is attached to."""
    image = str(server.data.path / "sandboxes" / instance / "disk.img")
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        # The folder was renamed since it was attached, so that the name is that of a file in stock.
        if os.path.exists(f"/dev/{backing.parts[3]}") and same_file(backing.parts[3], image):
            return f"/dev/{backing.parts[3]}"
    raise AssertionError(f"no loop device has {image}")


def same_file(device, image):
    entries = subprocess.run(
        ["losetup", "--list", "--noheadings", "--output", "BACK-INO,BACK-MAJ:MIN", f"/dev/{device}"], capture_output=True, text=True
    ).stdout.split()
    found = os.stat(image)
    return entries == [str(found.st_ino), f"{os.major(found.st_dev)}:{os.minor(found.st_dev)}"]
