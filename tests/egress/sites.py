"""Web sites of this host: each at an address of its own in 127.0.0.0/8, with and without TLS."""

import gzip
import http.server
import json
import socket
import ssl
import threading
import time
from typing import NamedTuple

import git_http
import relays

PIECE = bytes(range(256)) * 256


class Request(NamedTuple):
    """A request as the site saw it. Names of headers are in lower case; `hosts` are all that it named."""

    is_tls: bool
    method: str
    path: str
    headers: dict
    hosts: list


class Site:
    """One web site.

    `/echo` says what it was asked, without the values of headers; `/mirror` with them, compressed for who likes that, and in
    headers of its own; `/bytes/N` gives N bytes; `/drip` never ends; `/git/…` are repositories and `/private/git/…` the same
    with a password. `CONNECT` makes it an open proxy.
    """

    def __init__(self, name, address, ports, authority):
        self.name, self.address = name, address
        self.http_port, self.https_port = ports
        self.http = f"http://{name}:{self.http_port}"
        self.https = f"https://{name}:{self.https_port}"
        self.requests = []
        self.connections = []
        self.hellos = []
        # Those who are given a download without end. A set, because connections come and go in threads of their own.
        self.drips = set()
        # How its open proxy finds a name's address.
        self.resolve = lambda _name: None
        # What `/private/git` asks for, and the folder of repositories.
        self.password = None
        self.repositories = None
        context = authority.server_context(name, f"*.{name}", address)
        context.sni_callback = lambda _socket, response, _context: self.hellos.append(response)
        self._servers = [
            _Server(self, (address, self.http_port), None),
            _Server(self, (address, self.https_port), context),
        ]

    @property
    def targets(self):
        """Its two ports as an operator writes them."""
        return [f"{self.address}:{self.http_port}", f"{self.address}:{self.https_port}"]

    @property
    def dripping(self):
        """How many downloads without end are under way."""
        return len(self.drips)

    def requests_for(self, path):
        """The requests for a path, oldest first."""
        return [request for request in self.requests if request.path.split("?")[0] == path]

    def __enter__(self):
        for server in self._servers:
            threading.Thread(target=server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        for server in self._servers:
            server.shutdown()
            server.server_close()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 4096

    def __init__(self, site, location, context):
        self.site, self.is_tls = site, context is not None
        super().__init__(location, _Handler)
        if context:
            # The handshake comes with the first read, in the connection's own thread.
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def get_request(self):
        connection, peer = super().get_request()
        self.site.connections.append(peer)
        return connection, peer

    def handle_error(self, *_):
        """Programs that go away in the middle are what many tests are about."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        self.request.settimeout(300)
        super().setup()

    def _note(self):
        headers = {name.lower(): value for name, value in self.headers.items()}
        hosts = self.headers.get_all("Host", [])
        self.server.site.requests.append(Request(self.server.is_tls, self.command, self.path, headers, hosts))
        return headers

    def do_GET(self):
        headers = self._note()
        path = self.path.split("?")[0]
        if path.startswith("/bytes/"):
            return self._bytes(int(path.rpartition("/")[2]))
        if path == "/drip":
            return self._drip()
        if path.startswith(("/git/", "/private/git/")):
            return git_http.serve(self)
        is_mirror = path == "/mirror"
        displayed = headers if is_mirror else sorted(headers)
        body = json.dumps({"site": self.server.site.name, "path": self.path, "headers": displayed}).encode()
        if not is_mirror:
            return self.answer(body)
        response = [("X-Seen", value) for value in headers.values()]
        if "gzip" in headers.get("accept-encoding", ""):
            return self.answer(gzip.compress(body), headers=[*response, ("Content-Encoding", "gzip")])
        self.answer(body, headers=response)

    def do_POST(self):
        self._note()
        if self.path.startswith(("/git/", "/private/git/")):
            return git_http.serve(self)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.answer(json.dumps({"site": self.server.site.name, "size": len(body)}).encode())

    def do_CONNECT(self):
        """An open proxy, as real as any: it goes wherever it is asked to."""
        self._note()
        host, _, port = self.path.rpartition(":")
        address = self.server.site.resolve(host) or host.strip("[]")
        with socket.create_connection((address, int(port)), 60) as other:
            self.send_response_only(200)
            self.end_headers()
            relays.carry(self.connection, other)
        self.close_connection = True

    def answer(self, body, status=200, headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _bytes(self, count):
        self.send_response(200)
        self.send_header("Content-Length", str(count))
        self.end_headers()
        while count > 0:
            self.wfile.write(PIECE[:count])
            count -= len(PIECE)

    def _drip(self):
        """A download without end: a piece every 20 ms, until the other side goes away."""
        site = self.server.site
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        site.drips.add(self)
        try:
            while True:
                self.wfile.write(PIECE[:1024])
                time.sleep(0.02)
        except (OSError, ssl.SSLError):
            pass
        finally:
            site.drips.discard(self)

    def log_message(self, *_):
        pass
