"""A sandbox in a cloud and the ways to it."""

import httpx

from client import ToolEndpoint
from clouds import TOOLS_PORT


class Guest:
    """One sandbox."""

    def __init__(self, server, api):
        self.server, self.api = server, api
        self.id = api.create()

    def remove(self):
        self.api.remove(self.id)

    @property
    def endpoint(self):
        """The way to its tools, as the server tells it."""
        return ToolEndpoint.to(self.api, self.server, self.id)

    def sh(self, line):
        """What a shell line prints."""
        return self.api.run(self.id, line)["output"].strip()

    def port(self, port, path="", headers=None, **options):
        """Asks a port by its preview, with no credentials but those given."""
        url = f"{self.server.url}/p/{self.id}/{port}/{path}"
        return httpx.request(options.pop("method", "GET"), url, headers=headers or {}, timeout=120, trust_env=False, **options)

    def plain(self, command):
        """Runs a command by the tool of that name, in one line."""
        body = {"tool": "run_command", "args": {"command": command}}
        return self.port(TOOLS_PORT, "mcp", self.endpoint.headers, method="POST", json=body)

    @property
    def tool_server(self):
        """The process that serves the tools, as its files inside tell; none: there is none."""
        pid = self.sh("cat ~/.sandyard/tools.pid 2>/dev/null || true")
        return pid if pid and self.sh(f"tr '\\0' ' ' </proc/{pid}/cmdline 2>/dev/null || true") else None
