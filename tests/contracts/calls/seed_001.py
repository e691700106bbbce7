"""The calls of seed 001's `SandboxClient`: the same URLs, bodies and keys, and nothing else."""

import httpx


class SandboxClient:
    def __init__(self, server_url, timeout=60):
        self.server_url = server_url.rstrip("/")
        self.timeout = timeout

    async def _call(self, method, path, **options):
        async with httpx.AsyncClient(timeout=self.timeout) as client:
            response = await client.request(method, f"{self.server_url}{path}", **options)
            response.raise_for_status()
            return response.json()

    async def create_sandbox(self, user_id, template_id=None):
        body = {"user_id": user_id, "template_id": template_id}
        return (await self._call("POST", "/sandboxes/create", json=body))["sandbox_id"]

    async def connect_sandbox(self, sandbox_id):
        await self._call("POST", "/sandboxes/connect", json={"sandbox_id": sandbox_id})

    async def run_command(self, sandbox_id, command, background=False):
        body = {"sandbox_id": sandbox_id, "command": command, "background": background}
        return (await self._call("POST", "/sandboxes/run-command", json=body))["output"]

    async def expose_port(self, sandbox_id, port):
        body = {"sandbox_id": sandbox_id, "port": port}
        return (await self._call("POST", "/sandboxes/expose-port", json=body))["url"]

    async def write_file(self, sandbox_id, path, content):
        body = {"sandbox_id": sandbox_id, "path": path, "content": content}
        await self._call("POST", "/sandboxes/write-file", json=body)

    async def read_file(self, sandbox_id, path):
        body = {"sandbox_id": sandbox_id, "path": path}
        return (await self._call("POST", "/sandboxes/read-file", json=body))["content"]

    async def schedule_timeout(self, sandbox_id, timeout):
        await self._call("POST", "/sandboxes/timeout", json={"sandbox_id": sandbox_id, "timeout": timeout})

    async def delete_sandbox(self, sandbox_id):
        await self._call("DELETE", f"/sandboxes/{sandbox_id}")
