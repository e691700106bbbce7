"""A data directory of the tests with its engine."""

import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import processes
from program import environment, find_program
from waiting import wait_for

# A debug build on two busy cores may take its time; nothing is measured by this.
_TIMEOUT = 120.0


class DataDir:
    """A data directory with its engine. Several servers may use it."""

    def __init__(self, path=None):
        # Short, because a socket's path may have 107 bytes; on a disk, because a sandbox's files are on one.
        self.path = path or Path(tempfile.mkdtemp(prefix="sandyard-test-", dir="/var/tmp"))
        self.path.mkdir(mode=0o700, exist_ok=True)

    def local(self, *arguments):
        """Asks the engine itself, past every server."""
        done = self.ask(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def ask(self, *arguments):
        """The same for what may fail."""
        command = [find_program(), "--data-dir", self.path, *arguments]
        return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=_TIMEOUT)

    def instances(self):
        """What the engine has, whatever a server may say."""
        return json.loads(self.local("ls", "--local", "--json"))

    def launchers(self):
        named = [pid for pid in processes.with_argument(str(self.path)) if "launcher" in processes.cmdline(pid)]
        # A child has its parent's name until it gives itself one, or for as long as it lives.
        return [pid for pid in named if processes.parent(pid) not in named]

    def remove(self):
        """Deletes what the engine still has, ends it and removes the directory. Fails if a sandbox or a process survives."""
        if (self.path / "launcher.lock").exists():
            wait_for(self._is_empty, lambda: f"the engine has nothing left, but {self._folders()}", _TIMEOUT)
        for pid in self.launchers():
            # One that is killed leaves what it would have taken away.
            processes.end(pid, _TIMEOUT)
        self._wait_for_the_rest()
        remaining = processes.with_argument(str(self.path))
        folders = self._folders()
        run = (self.path / "run").resolve()
        shutil.rmtree(self.path, ignore_errors=True)
        if run.name.startswith("sandyard-"):
            shutil.rmtree(run, ignore_errors=True)
        assert not remaining, [processes.cmdline(pid) for pid in remaining]
        # Now, where it is known whose they are, and not at the end of all tests.
        assert not folders, f"sandboxes were left: {folders}"

    def _is_empty(self):
        # What a server that was killed had begun may go on for a moment: one comes or goes while we look.
        done = self.ask("rm", "--local", "--all")
        return done.returncode == 0 and not done.stdout and not self._folders()

    def _folders(self):
        """Folders of sandboxes, of those too that nobody lists: ready ones, and one that is about to come or go."""
        return [path.name for path in (self.path / "sandboxes").glob("*")]

    def _wait_for_the_rest(self):
        """Processes that end with the launcher may still be at it; the caller says which do not."""
        end = time.monotonic() + _TIMEOUT
        while processes.with_argument(str(self.path)) and time.monotonic() < end:
            # One that a killed server had just started came too late to be among those that were ended.
            for pid in self.launchers():
                processes.end(pid, _TIMEOUT)
            time.sleep(0.05)
