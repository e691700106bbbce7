"""A web site inside a sandbox, and the ways to reach it."""

from pathlib import Path

import httpx

from sockets import Socket
from waiting import wait_for

SITE = (Path(__file__).parent / "sandbox_site.py").read_text()
PORT = 3000


def start_site(api, sandbox, port=PORT):
    """Runs the site in a sandbox and waits until it listens."""
    api.write(sandbox, "/home/user/site.py", SITE)
    api.run(sandbox, f"exec python3 /home/user/site.py {port}", background=True)
    probe = f"python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 10)'"
    wait_for(lambda: api.run(sandbox, probe)["exit_code"] == 0, "the site listens")


class Preview:
    """One port of a sandbox by one form of its address: `path`, `port-first` or `id-first`."""

    FORMS = ("path", "port-first", "id-first")

    def __init__(self, server, sandbox, form, port=PORT):
        host = f"127.0.0.1:{server.port}"
        labels = {"port-first": f"{port}-{sandbox}", "id-first": f"{sandbox}-{port}"}
        # The name needs no DNS: the connection goes to the server, the header says what is meant.
        self.host = f"{labels[form]}.localhost:{server.port}" if form in labels else host
        self.prefix = "" if form in labels else f"/p/{sandbox}/{port}"
        self.base = f"http://{host}{self.prefix}"
        self.server = ("127.0.0.1", server.port)
        self.websocket_url = f"ws://{self.host}{self.prefix}"
        self.headers = {"Host": self.host}

    def request(self, method, path="/", headers=None, **options):
        options = {"timeout": 120, "trust_env": False, **options}
        return httpx.request(method, self.base + path, headers={**self.headers, **(headers or {})}, **options)

    def get(self, path="/", **options):
        return self.request("GET", path, **options)

    def websocket(self, path="/ws", **options):
        return Socket(self.websocket_url + path, self.server, **options)
