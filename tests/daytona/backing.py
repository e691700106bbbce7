"""What is behind every sandbox: a real Sandyard that this counterpart starts, spoken to in its native dialect."""

import asyncio
import sys
from pathlib import Path

import aiohttp

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "harness"))

import processes  # noqa: E402
from data_dir import DataDir  # noqa: E402
from server import Server  # noqa: E402

# What sandboxes start from: this host's programs, and the account that Daytona's own image has.
TEMPLATE = "daytona-sandbox"
USER = "daytona"
HOME = f"/home/{USER}"


class KeptData(DataDir):
    """A data directory that outlives the process."""

    def __init__(self, path):
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)


class Orphanless(Server):
    """A server that ends when the counterpart does, however that ends, and not by what is sent to its whole group."""

    def command(self):
        return ["setsid", "setpriv", "--pdeathsig", "KILL", *super().command()]


class NativeError(Exception):
    """The backing server said no."""

    def __init__(self, status, detail, code=""):
        super().__init__(f"{status}: {detail}")
        self.status, self.detail, self.code = status, detail, code


class Backing:
    """The server and a client of it."""

    def __init__(self, state=None):
        self._data = KeptData(state / "sandyard") if state else DataDir()
        for pid in processes.with_argument(str(self._data.path)):
            if "serve" in processes.cmdline(pid):
                processes.end(pid)
        self._server = Orphanless(data=self._data)
        self._http = None

    async def start(self):
        # In this thread: the server ends with the thread that started it.
        self._server.start()
        timeout = aiohttp.ClientTimeout(total=None)
        self._http = aiohttp.ClientSession(self._server.url, timeout=timeout, connector=aiohttp.TCPConnector(limit=0))
        if TEMPLATE not in await self.templates():
            await self._make_template()

    async def _make_template(self):
        created = await self.create({"template": "host"})
        await self.run(created, ["useradd", "--create-home", "--shell", "/bin/bash", USER], user="root")
        await self.post(f"/sandboxes/{created}/snapshot", {"name": TEMPLATE})
        await self.remove(created)

    async def close(self):
        """Takes the server, its sandboxes and its data away."""
        if self._http:
            await self._http.close()
        await asyncio.to_thread(self._end)

    def _end(self):
        try:
            self._server.close()
        finally:
            self._data.remove()

    @property
    def address(self):
        return "127.0.0.1", self._server.port

    # --- calls

    async def call(self, method, path, **options):
        async with self._http.request(method, path, **options) as reply:
            return await self._to_json(reply)

    @staticmethod
    async def _to_json(reply):
        response = await reply.json()
        if reply.status >= 300:
            raise NativeError(reply.status, response.get("detail", ""), response.get("code", ""))
        return response

    async def get(self, route, /, **query):
        return await self.call("GET", route, params=query)

    async def post(self, route, body=None, /, **query):
        return await self.call("POST", route, json=body or {}, params=query)

    def stream(self, method, path, **options):
        """An answer that is read as it comes."""
        return self._http.request(method, path, **options)

    # --- verbs

    async def create(self, body, key=None):
        headers = {"Idempotency-Key": key} if key else {}
        sent = {"user_id": "daytona", "timeout": 86400, **body}
        return (await self.call("POST", "/sandboxes/create", json=sent, headers=headers))["sandbox_id"]

    async def templates(self):
        return {template["name"] for template in (await self.get("/templates"))["templates"]}

    async def remove(self, native):
        try:
            await self.call("DELETE", f"/sandboxes/{native}")
        except NativeError as error:
            if error.status != 404:
                raise

    async def stop(self, native):
        """Stops for good: a call that was on its way may have woken it again."""
        for _ in range(10):
            await self.post(f"/sandboxes/{native}/stop")
            if (await self.get(f"/sandboxes/{native}/status"))["status"] != "running":
                return
        raise NativeError(409, "the sandbox does not stay stopped")

    async def run(self, native, command, *, user=USER, cwd=None, env=None, timeout=None):
        """Runs a command to its end; the native answer."""
        body = {"sandbox_id": native, "command": command, "user": user, "cwd": cwd, "env": env or {}, "timeout": timeout}
        return await self.post("/sandboxes/run-command", {name: value for name, value in body.items() if value is not None})

    async def spawn(self, native, command, *, user=USER, cwd=None, env=None):
        """Runs a command in the background; its process id."""
        body = {"sandbox_id": native, "command": command, "user": user, "background": True, "env": env or {}}
        return (await self.post("/sandboxes/run-command", {**body, **({"cwd": cwd} if cwd else {})}))["process_id"]
