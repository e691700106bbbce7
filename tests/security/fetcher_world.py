"""A server, a public web site and a name server in namespaces of their own; prints as JSON what became of each URL.

This host has the public address 45.66.77.1 here; the site is at 45.66.77.2. Run by test_fetcher.py under `unshare --net --mount`.
"""

import http.server
import json
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

HERE = Path(__file__).parent
sys.path += [str(HERE.parent / "harness"), str(HERE.parent / "egress")]

from names import Names  # noqa: E402
from server import Server  # noqa: E402

_OWN, _SITE, _PORT = "45.66.77.1", "45.66.77.2", 8599


class _Handler(http.server.BaseHTTPRequestHandler):
    """`/to/REST` redirects to `http://REST`; everything else is a file."""

    def do_GET(self):
        self.server.seen.append(self.path)
        is_redirect = self.path.startswith("/to/")
        self.send_response(302 if is_redirect else 200)
        if is_redirect:
            self.send_header("Location", f"http://{self.path.removeprefix('/to/')}")
        body = b"" if is_redirect else b"hello"
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self):
        self.server.seen.append(self.path)
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def _site():
    server = http.server.ThreadingHTTPServer(("0.0.0.0", _PORT), _Handler)
    server.seen = []
    return server


def _ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


def serve_site():
    """The process of the site: says that it has a namespace, waits until that has an address, and serves."""
    print("ready", flush=True)
    sys.stdin.readline()
    _ip("link", "set", "lo", "up")
    _ip("address", "add", f"{_SITE}/24", "dev", "inner")
    _ip("link", "set", "inner", "up")
    server = _site()
    print("serving", flush=True)
    server.serve_forever()


def main():
    _ip("link", "set", "lo", "up")
    command = ["unshare", "--net", sys.executable, __file__, "site"]
    site = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert site.stdout.readline() == "ready\n"
        _ip("link", "add", "outer", "type", "veth", "peer", "name", "inner", "netns", str(site.pid))
        _ip("address", "add", f"{_OWN}/24", "dev", "outer")
        _ip("link", "set", "outer", "up")
        print("go", file=site.stdin, flush=True)
        assert site.stdout.readline() == "serving\n"
        print(json.dumps(_results()))
    finally:
        site.kill()
        site.wait()


def _results():
    canary = _site()
    threading.Thread(target=canary.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(prefix="sandyard-fetcher-") as folder, Names(port=53) as names:
        resolv = Path(folder, "resolv.conf")
        resolv.write_text(f"nameserver {names.address}\n")
        target = Path("/etc/resolv.conf").resolve()
        subprocess.run(["mount", "--bind", resolv, target], check=True)
        try:
            with Server(SANDBOX_READY=0, GATEWAY_DENIED=f"denied.test,{_SITE}:8600") as server:
                return {**_fetch_all(server.api(), names), "canary": canary.seen}
        finally:
            subprocess.run(["umount", target], check=True)


def _fetch_all(api, names):
    for name, *turns in (
        ("site.test", _SITE),
        ("denied.test", _SITE),
        ("own.test", _OWN),
        ("turns.test", _SITE, _OWN),
        ("redirected.test", _SITE, "127.0.0.1"),
    ):
        names.set_in_turn(name, *turns)
    sandbox = api.create()

    def fetch(url):
        body = {"sandbox_id": sandbox, "file_path": "/tmp/x", "url": f"http://{url}"}
        return api.post("/sandboxes/upload-file-from-url", body).status_code

    def fill(url):
        body = {"sandbox_id": sandbox, "file_path": "/etc/hostname", "presigned_url": f"http://{url}"}
        return api.post("/sandboxes/download-to-presigned-url", body).status_code

    return {
        "site": fetch(f"{_SITE}:{_PORT}/file"),
        "site by name": fetch(f"site.test:{_PORT}/file"),
        "own": fetch(f"{_OWN}:{_PORT}/file"),
        "own by name": fetch(f"own.test:{_PORT}/file"),
        "own by redirect": fetch(f"{_SITE}:{_PORT}/to/{_OWN}:{_PORT}/file"),
        "own, filled": fill(f"{_OWN}:{_PORT}/file"),
        "site, filled": fill(f"{_SITE}:{_PORT}/file"),
        "denied name": fetch(f"denied.test:{_PORT}/file"),
        "denied port": fetch("site.test:8600/file"),
        "first turn": fetch(f"turns.test:{_PORT}/file"),
        "second turn": fetch(f"turns.test:{_PORT}/file"),
        # The name leads to the site, which redirects to the same name, which by then leads to loopback.
        "turn by redirect": fetch(f"redirected.test:{_PORT}/to/redirected.test:{_PORT}/file"),
    }


if __name__ == "__main__":
    serve_site() if sys.argv[1:] == ["site"] else main()
