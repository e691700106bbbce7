"""The counterpart as a process of its own, as the provider's tests start it too."""

import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import httpx

# For one answer, on a machine that is busy with other things.
TIMEOUT = 120

KEY = "dtn_of_the_tests"


class Counterpart:
    """`counterpart.py` with some options. A process that ends with an error fails the test that ends it."""

    def __init__(self, *options, key=KEY, python=sys.executable):
        self._options, self.key, self._python = options, key, python
        self._response = tempfile.TemporaryFile()
        self._process = self.api_url = None

    def start(self):
        program = [self._python, str(Path(__file__).with_name("counterpart.py")), "--key", self.key, *self._options]
        self._process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=self._response, text=True)
        self.api_url = self._process.stdout.readline().strip()
        assert self.api_url, self.tail()
        threading.Thread(target=self._process.stdout.read, daemon=True).start()
        return self

    @property
    def url(self):
        return self.api_url.removesuffix("/api")

    def tail(self):
        self._response.seek(0)
        return self._response.read().decode(errors="replace")[-4000:]

    def kill(self):
        """As a power failure would."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def stop(self):
        self._process.terminate()
        # It ends its server, what that left and the launcher, one after the other.
        code = self._process.wait(timeout=5 * TIMEOUT)
        assert code == 0, self.tail()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    # --- what is not Daytona's

    def report(self):
        return httpx.get(f"{self.url}/__counterpart/report", timeout=TIMEOUT).json()

    def fault(self, **fault):
        httpx.post(f"{self.url}/__counterpart/fault", json=fault, timeout=TIMEOUT).raise_for_status()

    def no_faults(self):
        httpx.delete(f"{self.url}/__counterpart/fault", timeout=TIMEOUT).raise_for_status()

    def bound_life(self, minutes):
        """Gives the organization a maximum lifespan of sandboxes; none takes it away."""
        httpx.post(f"{self.url}/__counterpart/lifespan", json={"minutes": minutes}, timeout=TIMEOUT).raise_for_status()

    def break_down(self, sandbox, recoverable=True):
        request_log = {"sandboxId": sandbox.id, "recoverable": recoverable}
        httpx.post(f"{self.url}/__counterpart/error", json=request_log, timeout=TIMEOUT).raise_for_status()

    def raw(self, method, path, **options):
        """A request as no SDK would send it."""
        headers = {"Authorization": f"Bearer {self.key}", "X-Daytona-Source": "raw", **options.pop("headers", {})}
        return httpx.request(method, self.api_url + path, headers=headers, timeout=TIMEOUT, **options)
