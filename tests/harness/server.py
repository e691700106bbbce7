"""The real server: started on a free port with a data directory of its own, and taken away without a trace."""

import signal
import ssl
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from api import Api, is_healthy, stopwatch
from data_dir import DataDir
from ports import free_port
from program import environment, find_program
from waiting import wait_for

# A debug build on two busy cores may take its time; nothing is measured by this.
_TIMEOUT = 120.0

# Environment variables of every server of this run: those of the provider that a whole suite runs with, see providers.py.
everywhere = {}
# Fewer ready sandboxes than usual, since most servers here live for a few creates only.
_DEFAULT = {"SANDYARD_SANDBOX_READY": "2"}


class Server:
    """`sandyard serve`. Settings are environment variables without their prefix: `AUTH_MODE="required"`.

    `variables` are those with a name of their own: `{"DOCKER_HOST": …}`. With `is_degraded` it counts as started although some
    of its providers cannot be reached.
    """

    def __init__(self, *flags, data=None, variables=None, is_degraded=False, **settings):
        self.data = data or DataDir()
        self._owns_data = data is None
        self.port = free_port()
        self.flags = [str(flag) for flag in flags]
        self.is_tls = "--tls-self-signed" in self.flags
        scheme = "https" if self.is_tls else "http"
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        # Named, since the one after the server's may be another test's.
        self.e2b_port = free_port()
        self.e2b_url = f"{scheme}://127.0.0.1:{self.e2b_port}"
        self.settings = {**_DEFAULT, **everywhere, **(variables or {})}
        self.settings.update({f"SANDYARD_{name}": str(value) for name, value in settings.items()})
        self._fine = ("healthy", "degraded") if is_degraded else ("healthy",)
        self.log = self.data.path / f"server-{self.port}.log"
        self._process = None

    # --- life

    def command(self):
        ports = ["--port", str(self.port), "--e2b-port", str(self.e2b_port)]
        return [str(find_program()), "serve", "--data-dir", str(self.data.path), *ports, *self.flags]

    def start(self):
        """Starts it and waits until it answers; returns the seconds that took."""
        elapsed = stopwatch()
        self.launch()
        self.wait_healthy()
        return elapsed()

    def launch(self):
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command(),
                env=environment(**self.settings),
                cwd=self.data.path,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def wait_healthy(self, deadline=_TIMEOUT):
        wait_for(self._answers, lambda: f"the server answers; the end of its log:\n{self.tail()}", deadline)

    def _answers(self):
        code = self._process.poll()
        assert code is None, f"the server ended with {code}; the end of its log:\n{self.tail()}"
        if self.is_tls and not self.certificate.exists():
            return False
        return is_healthy(self.url, self.trust(), self._fine)

    def kill(self):
        """Ends it as a power failure would."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def stop(self):
        """Ends it as an operator would."""
        if self._process.poll() is None:
            self._process.terminate()
        return self._process.wait(timeout=_TIMEOUT)

    def close(self):
        """Takes the server and all its sandboxes away."""
        with ExitStack() as stack:
            if self._owns_data:
                stack.callback(self.data.remove)
            if self.is_running():
                stack.callback(self._end)
                self._delete_all()

    def _end(self):
        try:
            assert self.stop() == 0, self.tail()
        finally:
            if self.is_running():
                self.kill()

    def _delete_all(self):
        # One of several servers on a database may have no key of its own; then it is an open one.
        api = self.admin() if (self.data.path / "admin.key").exists() else self.api()
        delete_all(api, is_away_fine="degraded" in self._fine)
        api.close()

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            if self.is_running():
                self.kill()
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    # --- looking at it

    def is_running(self):
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self):
        return self._process.pid

    def tail(self, lines=40):
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    @property
    def admin_key(self):
        return (self.data.path / "admin.key").read_text().strip()

    @property
    def certificate(self):
        """What clients must trust, for a server that speaks TLS with a certificate of its own."""
        return self.data.path / "tls" / "ca.pem"

    def trust(self):
        """The same for httpx. Without TLS nobody: to read the host's list of authorities takes longer than a request."""
        return ssl.create_default_context(cafile=self.certificate) if self.is_tls else False

    def api(self, key=None, **options):
        return Api(self.url, key, verify=self.trust(), **options)

    def admin(self):
        return self.api(self.admin_key)


def delete_all(api, at_once=8, is_away_fine=False):
    """Deletes every sandbox the caller may see, save those whose provider is away, if that is fine."""

    def remove(sandbox):
        if is_away_fine and api.delete(f"/sandboxes/{sandbox}").status_code == 503:
            return
        api.remove(sandbox)

    ids = [sandbox["sandbox_id"] for sandbox in api.all()]
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(remove, ids))


def server_that_refuses(*flags, **settings):
    """Starts a server that must exit; returns its exit code and output."""
    server = Server(*flags, **settings)
    try:
        server.launch()
        code = server._process.wait(timeout=_TIMEOUT)
        return code, server.tail()
    finally:
        if server.is_running():
            server.kill()
        server.data.remove()
