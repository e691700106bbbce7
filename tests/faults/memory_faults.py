"""Memory that is exhausted: a sandbox's own, and that of the group the server runs in."""

import subprocess
import sys
from pathlib import Path

import cgroups
import processes
from fault import Fault

HOG = "import time\nheld = []\nwhile True:\n    try:\n        held.append(bytearray(1 << 20))\n    except MemoryError:\n        time.sleep(0.01)\n"


class SandboxMemoryExhausted(Fault):
    """Programs of the sandbox take all memory it may have, again and again: the kernel ends them one by one."""

    def inject(self, verb):
        command = f"nohup sh -c 'while :; do python3 -c \"{HOG_LINE}\"; done' >/dev/null 2>&1 & echo $!"
        verb.hog = verb.api.run(verb.sandbox, command)["stdout"].strip()

    def heal(self, verb):
        if not verb.is_deleting:
            body = {"sandbox_id": verb.sandbox, "command": f"pkill -KILL -P {verb.hog}; kill -KILL {verb.hog}; pkill -KILL python3; true"}
            verb.cell.until_ok(lambda: verb.api.post("/sandboxes/run-command", body))


HOG_LINE = "x = [bytearray(1 << 20) for _ in range(1 << 12)]"


class ServerMemoryExhausted(Fault):
    """The server shares a memory cgroup with a program that takes all that is left, and is ended by the kernel for it."""

    def set_up(self, stack):
        server = super().set_up(stack)
        self.group = make_group(f"sandyard-test-{server.port}", processes.memory_bytes(server.pid) + (96 << 20))
        stack.callback(cgroups.remove, self.group.name)
        (self.group / "cgroup.procs").write_text(str(server.pid))
        stack.callback(lambda: (self.group.parent / "cgroup.procs").write_text(str(server.pid)) if server.is_running() else None)
        return server

    def inject(self, verb):
        script = f"echo $$ >{self.group}/cgroup.procs; echo 1000 >/proc/self/oom_score_adj; while :; do {sys.executable} -c '{HOG}'; done"
        self.hog = subprocess.Popen(["sh", "-c", script], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)

    def heal(self, verb):
        self.hog.kill()
        self.hog.wait()
        for pid in map(int, (self.group / "cgroup.procs").read_text().split()):
            if pid != self.server.pid and HOG in processes.cmdline(pid):
                processes.end(pid)


def make_group(name, limit):
    """A memory cgroup below the root, by the older interface of the kernel or the newer one."""
    old, new = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
    if (old / "memory.limit_in_bytes").exists():
        group, file = old / name, "memory.limit_in_bytes"
    else:
        group, file = new / name, "memory.max"
    group.mkdir()
    (group / file).write_text(str(limit))
    return group
