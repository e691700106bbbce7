"""HTTP/2 and how exchanges break off: what clients other than the SDK see, with curl, h2load and frames of one's own."""

import json
import os
import re
import socket
import ssl
import struct
import subprocess
from urllib.parse import urlsplit

import h2.config
import h2.connection
import h2.errors
import h2.events
import pytest

import mode
from public_ports import PORT, start_site
from waiting import wait_for

# Exit codes of curl: an HTTP/2 stream that was reset, and a connection that was.
STREAM_RESET, CONNECTION_RESET = 92, 56


def is_domain():
    return isinstance(mode.current, mode.InDomain)


def api(server):
    """URL of the API, as the SDK calls it."""
    return f"https://api.{mode.current.domain(server)}" if is_domain() else server.e2b_url


def curl(*arguments, **options):
    trust = ["--cacert", os.environ["SSL_CERT_FILE"]] if is_domain() else []
    command = ["curl", "--silent", "--max-time", "100", *trust, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, **options)


def version_of(*arguments):
    process = curl("--output", "/dev/null", "--write-out", "%{http_code} %{http_version}", *arguments)
    return process.communicate()[0].decode()


def test_curl_speaks_http2(server, pointed):
    url = f"{api(server)}/health"
    assert version_of("--http1.1", url) == "200 1.1"
    assert version_of("--http2-prior-knowledge", url) == "200 2"
    assert version_of("--http2", url) == ("200 2" if is_domain() else "200 1.1")


def test_a_port_is_opened_in_http2(server, fresh_sandbox):
    start_site(fresh_sandbox)
    host = fresh_sandbox.get_host(PORT)
    request = ["--http2-prior-knowledge", "--header", f"Host: {host}", "--cookie", "a=1; b=2"]
    url = f"https://{host}" if is_domain() else server.e2b_url
    reply = json.loads(curl(*request, f"{url}/path?x=1").communicate()[0])
    assert (reply["path"], reply["headers"]["Cookie"], reply["headers"]["Host"]) == ("/path?x=1", "a=1; b=2", host)
    assert json.loads(curl(*request, "--data", "some body", url).communicate()[0])["size"] == 9


# Answers with what it was sent, chunks as chunks.
MIRROR = """
import socket
listener = socket.create_server(("127.0.0.1", 3001))
while True:
    connection, data = listener.accept()[0], b""
    while b"\\r\\n0\\r\\n" not in data and (piece := connection.recv(65536)):
        data += piece
    connection.sendall(b"HTTP/1.1 200 OK\\r\\nConnection: close\\r\\n\\r\\n" + data)
    connection.close()
"""


def test_a_body_without_a_length_reaches_a_port(server, fresh_sandbox):
    fresh_sandbox.files.write("mirror.py", MIRROR)
    fresh_sandbox.commands.run("exec python3 mirror.py", background=True, timeout=0)
    host = fresh_sandbox.get_host(3001)
    url = f"https://{host}" if is_domain() else server.e2b_url

    def mirrored():
        process = curl("--http2-prior-knowledge", "--header", f"Host: {host}", "--upload-file", "-", f"{url}/x", stdin=subprocess.PIPE)
        return process.communicate(b"some body")[0]

    seen = wait_for(lambda: (reply := mirrored()).startswith(b"PUT /x") and reply, "the port answers")
    assert b"Transfer-Encoding: chunked" in seen and b"some body" in seen


@pytest.mark.parametrize("option, code", [("--http2-prior-knowledge", STREAM_RESET), ("--http1.1", CONNECTION_RESET)])
def test_a_killed_sandbox_breaks_its_streams_off(server, fresh_sandbox, option, code):
    request = json.dumps({"process": {"cmd": "sh", "args": ["-c", "echo begun; sleep 1000"]}}).encode()
    headers = {
        "Content-Type": "application/connect+json",
        "Connect-Protocol-Version": "1",
        "X-Access-Token": fresh_sandbox._envd_access_token,
        "E2b-Sandbox-Id": fresh_sandbox.sandbox_id,
        "E2b-Sandbox-Port": "49983",
    }
    host = f"https://{fresh_sandbox.get_host(49983)}" if is_domain() else server.e2b_url
    options = [item for name, value in headers.items() for item in ("--header", f"{name}: {value}")]
    command = [option, "--no-buffer", *options, "--data-binary", "@-", f"{host}/process.Process/Start"]
    process = curl(*command, stdin=subprocess.PIPE)
    process.stdin.write(struct.pack(">BI", 0, len(request)) + request)
    process.stdin.close()
    seen = b""
    while b"YmVndW4K" not in seen:  # "begun\n" in base64
        piece = process.stdout.read1()
        assert piece, seen
        seen += piece
    fresh_sandbox.kill()
    assert process.wait(100) == code
    process.stdout.close()


def test_h2load_gets_all_its_answers(server, pointed):
    url = f"{api(server)}/health"
    done = subprocess.run(["h2load", "-n", "2000", "-c", "8", "-m", "32", url], capture_output=True, text=True, timeout=200)
    assert re.search(r"2000 succeeded, 0 failed, 0 errored", done.stdout), done.stdout + done.stderr


class Client:
    """A connection of frames that one chooses, and what the server answered to them."""

    def __init__(self, server):
        parts = urlsplit(api(server))
        self.authority = parts.netloc
        self.socket = socket.create_connection(("127.0.0.1", parts.port), 60)
        if is_domain():
            context = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
            context.set_alpn_protocols(["h2"])
            self.socket = context.wrap_socket(self.socket, server_hostname=parts.hostname)
        self.state = h2.connection.H2Connection(config=h2.config.H2Configuration(header_encoding="utf-8"))
        self.state.initiate_connection()
        self.events = []
        self.is_open = True
        self.flush()

    def ask(self, **headers):
        """Sends the head of a request."""
        stream = self.state.get_next_available_stream_id()
        pseudo = {":method": "GET", ":path": "/health", ":scheme": "https", ":authority": self.authority}
        self.state.send_headers(stream, [*pseudo.items(), *headers.items()], end_stream=True)
        return stream

    def flush(self):
        self.send(self.state.data_to_send())

    def send(self, data):
        try:
            self.socket.sendall(data)
        except OSError:
            self.is_open = False

    def read(self):
        """Reads once; false when the server has closed the connection."""
        try:
            data = self.socket.recv(65536)
        except TimeoutError:
            raise
        except OSError:
            data = b""
        if data:
            self.events += self.state.receive_data(data)
            self.flush()
        return bool(data)

    def until_closed(self):
        while self.read():
            pass
        return [event for event in self.events if isinstance(event, h2.events.ConnectionTerminated)]

    def close(self):
        self.socket.close()


@pytest.fixture
def client(server, pointed):
    client = Client(server)
    yield client
    client.close()
    assert version_of("--http2-prior-knowledge", f"{api(server)}/health") == "200 2", "others are served as before"


def test_a_flood_of_resets_ends_its_connection(client):
    """CVE-2023-44487: requests that are cancelled as soon as they are sent."""
    for _ in range(10_000):
        if not client.is_open:
            break
        client.state.reset_stream(client.ask())
        client.flush()
    # The kernel may reset the connection before the reason is read.
    assert {event.error_code for event in client.until_closed()} <= {h2.errors.ErrorCodes.ENHANCE_YOUR_CALM}


def test_a_flood_of_streams_waits(client):
    """More streams than are allowed at a time are refused."""
    wait_for(lambda: client.read() and client.state.remote_settings.max_concurrent_streams <= 256, "its settings are here")


def test_a_flood_of_headers_ends_its_connection(client):
    """CVE-2024-27316: a head without an end, in frames that continue it."""
    head = struct.pack(">I", 5)[1:] + b"\x01\x00" + struct.pack(">I", 1) + b"\x82\x87\x84\x01\x00"
    client.send(head)
    # A literal field that is not indexed: x: 16,000 times "a".
    field = b"\x00\x01x\x7f" + bytes([0x80 | (16_000 - 127) & 0x7F, (16_000 - 127) >> 7]) + b"a" * 16_000
    more = struct.pack(">I", len(field))[1:] + b"\x09\x00" + struct.pack(">I", 1) + field
    sent = 0
    while client.is_open and sent < 200 << 20:
        client.send(more)
        sent += len(more)
    assert sent < 200 << 20, "it takes heads without an end"


def test_a_long_head_is_refused(client):
    client.ask(**{f"x-{number}": "a" * 1000 for number in range(100)})
    client.flush()
    answers = lambda: [event for event in client.events if isinstance(event, (h2.events.ResponseReceived, h2.events.StreamReset))]
    while not answers():
        assert client.read()
    first = answers()[0]
    assert isinstance(first, h2.events.StreamReset) or dict(first.headers)[":status"] == "431"
