"""A data directory of the tests with its engine."""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import processes
from program import environment, find_program

# A debug build on two busy cores may take its time; nothing is measured by this.
_PATIENCE = 60.0


class DataDir:
    """A data directory with its engine. Several servers may use it."""

    def __init__(self):
        # Short, because a socket's path may have 107 bytes; on a disk, because a sandbox's files are on one.
        self.path = Path(tempfile.mkdtemp(prefix="sandyard-test-", dir="/var/tmp"))

    def local(self, *arguments):
        """Asks the engine itself, past every server."""
        command = [find_program(), "--data-dir", self.path, *arguments]
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=_PATIENCE)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def instances(self):
        """What the engine has, whatever a server may say."""
        return json.loads(self.local("ls", "--local", "--json"))

    def launchers(self):
        return [pid for pid in processes.with_argument(str(self.path)) if "launcher" in processes.cmdline(pid)]

    def remove(self):
        """Deletes what the engine still has, ends it and removes the directory. Fails if a process survives."""
        if (self.path / "launcher.lock").exists():
            for instance in self.instances():
                self.local("rm", "--local", instance["id"])
        for pid in self.launchers():
            processes.end(pid)
        left = processes.with_argument(str(self.path))
        run = (self.path / "run").resolve()
        shutil.rmtree(self.path, ignore_errors=True)
        if run.name.startswith("sandyard-"):
            shutil.rmtree(run, ignore_errors=True)
        assert not left, [processes.cmdline(pid) for pid in left]
