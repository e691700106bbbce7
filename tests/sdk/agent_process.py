"""Runs the agent as PID 1 of private mount and pid namespaces, so that the host is left untouched.

Inside, /etc is a private copy with a `user` in it; /home, /root and /tmp are private directories. The network is that of the
tests, because the SDK's debug mode talks to localhost:49983; see `own_network.py`.
"""

import os
import shutil
import socket
import subprocess
import urllib.request
from pathlib import Path

from waiting import wait_for

# The checkout may be in a folder that a mount hides: so the descriptor of the agent is opened before, and the private folders
# are named from where we are, by names that are left as they are.
_SCRIPT = """
set -e
exec 9<"$AGENT"
cd "$PRIVATE"
for folder in etc home root tmp; do mount --no-canonicalize --bind $folder /$folder; done
cd /
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin /proc/self/fd/9 "$@"
"""


def find_program():
    """The agent to test: $SANDYARD_AGENT, else the newest one built in this checkout."""
    if by_name := os.environ.get("SANDYARD_AGENT"):
        return Path(by_name)
    checkout = Path(__file__).resolve().parents[2]
    target = Path(os.environ.get("CARGO_TARGET_DIR", checkout / "target"))
    built = sorted(target.glob("*/*/sandyard-agent"), key=lambda path: path.stat().st_mtime)
    if not built:
        raise RuntimeError("no agent: run `cargo build -p sandyard-agent --bin sandyard-agent` first")
    return built[-1]


class AgentProcess:
    """A running agent. `home` is the host's path of /home/user inside."""

    def __init__(self, private: Path, port: int, *options: str):
        self.private, self.port = private, port
        self.home = private / "home" / "user"
        self.log = private / "agent.log"
        if os.geteuid() != 0:
            raise RuntimeError("private namespaces with a user of their own need root")
        self._refuse_taken_port()
        self._lay_out()
        command = ["unshare", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
        command += ["bash", "-c", _SCRIPT, "agent", "--listen", f"127.0.0.1:{port}", "--user", "user", "--init", *options]
        self._unshare = subprocess.Popen(
            command,
            env={**os.environ, "AGENT": str(find_program()), "PRIVATE": str(private)},
            stdin=subprocess.DEVNULL,
            stdout=self.log.open("wb"),
            stderr=subprocess.STDOUT,
        )
        wait_for(self._answers, f"the agent answers on port {port}; its log: {self.log}")

    @property
    def pid(self):
        """The agent's pid as the host sees it; inside it is 1."""
        parent = self._unshare.pid
        return int(Path(f"/proc/{parent}/task/{parent}/children").read_text())

    def stop(self):
        """Ends the agent; with its first process the kernel ends the whole namespace."""
        self._unshare.kill()
        self._unshare.wait()
        shutil.rmtree(self.private, ignore_errors=True)

    def _refuse_taken_port(self):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", self.port))
            except OSError as error:
                raise RuntimeError(f"port {self.port} is in use, and the SDK's debug mode knows no other") from error

    def _lay_out(self):
        etc = self.private / "etc"
        # All of it: a mount on a single file is gone as soon as somebody makes a user on the host, which replaces that file.
        # Locks and the like that go while they are copied are not missed, so what it says about them is passed over.
        subprocess.run(["cp", "--archive", "/etc", etc], capture_output=True)
        for directory in (self.home, self.private / "root", self.private / "tmp"):
            directory.mkdir(parents=True)
        (self.private / "tmp").chmod(0o1777)
        (self.private / "root").chmod(0o700)
        (etc / "passwd").write_text(_without("/etc/passwd") + "user:x:1000:1000::/home/user:/bin/bash\n")
        (etc / "group").write_text(_without("/etc/group") + "user:x:1000:\n")
        (etc / "shadow").write_text("root:*:19000:0:99999:7:::\nuser:*:19000:0:99999:7:::\n")
        (etc / "shadow").chmod(0o600)
        os.chown(self.home, 1000, 1000)

    def _answers(self):
        if self._unshare.poll() is not None:
            raise RuntimeError(f"the agent ended with {self._unshare.returncode}:\n{self.log.read_text()}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=10) as reply:
                return reply.status == 204
        except OSError:
            return False


def _without(path):
    """A user or group file less what would clash with ours."""
    lines = Path(path).read_text().splitlines(keepends=True)
    return "".join(line for line in lines if line.split(":")[0] != "user" and line.split(":")[2] != "1000")
