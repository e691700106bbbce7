"""Real PostgreSQL and Redis from packages, each on a port and in a directory of its own."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from ports import free_port
from waiting import wait_for


def _find(program):
    """PostgreSQL keeps its programs in a directory per version; the newest is taken."""
    if found := shutil.which(program):
        return found
    installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"), key=lambda path: int(path.parts[4]))
    if not installed:
        raise RuntimeError(f"{program} is not installed (sudo apt-get install postgresql redis-server)")
    return str(installed[-1])


class _Engine:
    """A program that is started, asked whether it is there, and taken away."""

    def __init__(self, prefix, user=None):
        self.port = free_port()
        self.path = Path(tempfile.mkdtemp(prefix=prefix, dir="/var/tmp"))
        self.user = user
        if user:
            entry = pwd.getpwnam(user)
            os.chown(self.path, entry.pw_uid, entry.pw_gid)
        self._process = None

    def start(self):
        log = (self.path / "log").open("ab")
        self._process = subprocess.Popen(
            self._as_user(self.command()), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.path
        )
        log.close()
        wait_for(self._answers, lambda: f"it answers; its log:\n{(self.path / 'log').read_text()[-2000:]}", 180)

    def _answers(self):
        assert self._process.poll() is None, (self.path / "log").read_text()[-2000:]
        return self.is_up()

    def kill(self):
        """Ends it as a power failure would."""
        self._process.kill()
        self._process.wait()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        # For both programs a quick end without waiting for clients.
        self._process.send_signal(signal.SIGINT)
        self._process.wait(timeout=180)
        shutil.rmtree(self.path, ignore_errors=True)

    def _as_user(self, command):
        if not self.user:
            return command
        # Not `runuser`, which would stay between us and the program; `setpriv` becomes it.
        return ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups", "--", *command]

    def _run(self, command, **options):
        return subprocess.run(
            self._as_user(command), check=True, capture_output=True, text=True, timeout=240, cwd=self.path, **options
        ).stdout


class Postgres(_Engine):
    """A database cluster. It refuses to run as root, so it runs as the user its package made."""

    def __init__(self):
        super().__init__("sandyard-test-pg-", user="postgres" if os.geteuid() == 0 else None)
        self.cluster = self.path / "cluster"
        self._run([_find("initdb"), "--auth=trust", "--username=sandyard", "--no-sync", "-D", str(self.cluster)])

    @property
    def url(self):
        return f"postgres://sandyard@127.0.0.1:{self.port}/postgres"

    def command(self):
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": self.path,
            "fsync": "off",
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return [_find("postgres"), "-D", str(self.cluster), *options]

    def is_up(self):
        try:
            return self.query("select 1") == "1"
        except subprocess.CalledProcessError:
            return False

    def query(self, sql):
        return self._run([_find("psql"), "-X", "-A", "-t", "-q", self.url, "-c", sql]).strip()

    def cut_connections(self):
        """Ends every connection but the one that says so; returns how many."""
        others = "from pg_stat_activity where pid <> pg_backend_pid() and usename = current_user"
        cut = f"select count(pg_terminate_backend(pid)) {others}"
        return int(self.query(cut))


class Redis(_Engine):
    """Redis without persistence: after a restart it is empty."""

    def __init__(self):
        super().__init__("sandyard-test-redis-")

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}/0"

    def command(self):
        return [_find("redis-server"), "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]

    def is_up(self):
        try:
            return self._run([_find("redis-cli"), "-p", str(self.port), "ping"]).strip() == "PONG"
        except subprocess.CalledProcessError:
            return False

    def size(self):
        return int(self._run([_find("redis-cli"), "-p", str(self.port), "dbsize"]).split()[-1])
