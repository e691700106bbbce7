"""A Docker daemon of the tests: its own socket, data, runtime folder and containerd, and nothing of the host's network.

Whatever Docker this host may run is neither used nor disturbed. Containers have no network of Docker's; the tests need none.
Needs root and the package `docker.io`.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path

import cgroups
import processes
from docker_api import DockerApi
from waiting import wait_for

# A daemon on two busy cores may take its time; nothing is measured by this.
_TIMEOUT = 180.0
IMAGE = "sandyard-test:latest"
_CHECKOUT = Path(__file__).resolve().parents[2]

_CONTAINERD = """
version = 2
root = "{root}"
state = "{state}"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
  address = "{address}"
"""


class Dockerd:
    """A daemon with a containerd of its own, as systemd would start the two.

    `is_restoring`: containers outlive a restart of the daemon (Docker's `live-restore`); without it they end with it.
    `tls`: (port, certificates) for a listener on loopback besides the socket, see `certificates.py`.
    """

    def __init__(self, is_restoring=True, tls=None):
        # On a disk, so that containers are on Docker's usual overlay; with our name, so that remains would be found.
        self.data = Path(tempfile.mkdtemp(prefix="sandyard-docker-", dir="/var/tmp"))
        # A socket's path must be short.
        self.run = Path(tempfile.mkdtemp(prefix="sandyard-docker-", dir="/run"))
        self.socket = self.run / "docker.sock"
        self.cgroup = self.run.name
        self.log = self.data / "dockerd.log"
        self._is_restoring, self._tls = is_restoring, tls
        self._containerd = self._dockerd = None
        self.api = DockerApi(self.socket)

    @property
    def host(self):
        """For `DOCKER_HOST`."""
        return f"unix://{self.socket}"

    # --- life

    def __enter__(self):
        try:
            self._start_containerd()
            tar = give_image(self.data / "docker")
            self.start()
            import_unless_given(self.api, tar)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def start(self):
        """Starts the daemon and waits until it answers."""
        # What is left by one that was killed; its number may be another process's by now.
        (self.run / "docker.pid").unlink(missing_ok=True)
        self._dockerd = self._spawn("dockerd", *self._options())
        wait_for(self._is_up, lambda: f"dockerd answers; the end of its log:\n{self.tail()}", _TIMEOUT)

    def _options(self):
        address = self.run / "containerd.sock"
        options = ["--host", self.host, "--containerd", address, "--data-root", self.data / "docker"]
        options += ["--exec-root", self.run / "exec", "--pidfile", self.run / "docker.pid"]
        options += ["--cgroup-parent", f"/{self.cgroup}", "--log-level", "warn", "--shutdown-timeout", "5"]
        # Nothing of the host's network is touched.
        options += ["--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false"]
        options += ["--config-file", self._write("daemon.json", "{}\n")]
        options += ["--live-restore"] if self._is_restoring else []
        if self._tls:
            port, certificates = self._tls
            options += ["--host", f"tcp://127.0.0.1:{port}", *certificates.daemon_options()]
        return options

    def _start_containerd(self):
        address = self.run / "containerd.sock"
        text = _CONTAINERD.format(root=self.data / "containerd", state=self.run / "containerd", address=address)
        self._containerd = self._spawn("containerd", "--config", self._write("containerd.toml", text))
        wait_for(address.exists, lambda: f"containerd listens; the end of its log:\n{self.tail()}", _TIMEOUT)

    def _is_up(self):
        code = self._dockerd.poll()
        assert code is None, f"dockerd ended with {code}; the end of its log:\n{self.tail()}"
        return self.api.answers()

    def kill(self):
        """Ends the daemon as a crash would; containers run on for now."""
        self._dockerd.kill()
        self._dockerd.wait()

    def restart(self):
        """Kills the daemon, if it is not dead yet, and starts it again."""
        if self._dockerd.poll() is None:
            self.kill()
        self.start()

    def freeze(self):
        """From now on it accepts connections and answers none."""
        self._dockerd.send_signal(signal.SIGSTOP)

    def thaw(self):
        self._dockerd.send_signal(signal.SIGCONT)

    def close(self):
        """Takes everything away: containers, volumes, daemons, cgroups, mounts and folders. Fails if a process survives."""
        with ExitStack() as stack:
            stack.callback(self._remove_folders)
            stack.callback(self._end_leftovers)
            for daemon in (self._containerd, self._dockerd):
                if daemon:
                    stack.callback(_end, daemon)
            stack.callback(self.api.close)
            if self._dockerd and self._dockerd.poll() is None:
                self.thaw()
                self.api.clear()

    def _end_leftovers(self):
        """Shims of containers that the daemon did not know any more; they name the socket of our containerd."""
        for pid in processes.with_argument(str(self.run / "containerd.sock")):
            processes.end(pid)

    def _remove_folders(self):
        # Docker forgets to take away the cgroup that held its containers'.
        cgroups.remove(self.cgroup)
        for folder in (self.run, self.data):
            wait_for(lambda folder=folder: _is_removed(folder), f"{folder} can be removed")

    # --- looking at it

    @property
    def pid(self):
        return self._dockerd.pid

    def tail(self, lines=30):
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def process_of(self, container):
        """The host's id of a container's first process."""
        return self.api.container(container)["State"]["Pid"]

    def _spawn(self, program, *options):
        with self.log.open("ab") as log:
            command = [_find(program), *map(str, options)]
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def _write(self, name, text):
        path = self.run / name
        path.write_text(text)
        return path


def images():
    """The folder with what `tests/docker/images` makes."""
    return Path(os.environ.get("CARGO_TARGET_DIR", _CHECKOUT / "target")).resolve() / "test-images"


def give_image(data_root):
    """Lets a daemon that is started on a folder have the image; the tarball, should the daemon keep images in another way."""
    subprocess.run([_CHECKOUT / "tests" / "docker" / "images", images(), data_root], check=True)
    return images() / "debian.tar"


def import_unless_given(api, tar):
    """To import it takes a daemon longer than most tests; see `tests/docker/images`."""
    if not api.has_image(IMAGE):
        api.import_image(tar, IMAGE)


def _find(program):
    found = shutil.which(program)
    assert found, f"there is no {program}: install the package docker.io"
    return found


def _end(process):
    """Asks a daemon to end, and makes it."""
    process.send_signal(signal.SIGCONT)
    process.terminate()
    try:
        process.wait(_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _is_removed(folder):
    """Removes a folder with all that is mounted in it. Mounts and files may disappear meanwhile."""
    for location in reversed(_mounts_below(folder)):
        subprocess.run(["umount", "--lazy", location], capture_output=True)
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def _mounts_below(folder):
    locations = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [location for location in locations if location.startswith(f"{folder}/")]
