"""A stand-in for the hosts of models: one task, done by one call of a tool.

It speaks as much of Anthropic's Messages and OpenAI's Responses as the coding agents' programs need: asked for the first time,
it has a shell command run, or another tool called; told what came out, it says so and ends. It believes nobody without the key,
which only the gateway has: a request without it is refused.
"""

import http.server
import json
import secrets
import threading
from typing import NamedTuple

import anthropic_messages
import openai_responses
from ports import free_port

_DIALECTS = {"/v1/messages": anthropic_messages, "/v1/responses": openai_responses}


class Request(NamedTuple):
    """A request as it came."""

    method: str
    path: str
    headers: dict
    body: dict


class Model:
    """`command` is what it has run. Its last words are `answer` and what the command wrote.

    `tool` is called instead, if there is one: its name and arguments.
    """

    name = "model.test"
    address = "127.0.0.21"

    def __init__(self, authority):
        self.authority = authority
        self.port = free_port()
        self.url = f"https://{self.name}:{self.port}"
        self.keys = {name: f"{name}-{secrets.token_hex(20)}" for name in ("anthropic", "openai")}
        self.command = "true"
        self.tool = None
        self.answer = "It is done."
        self.requests = []
        self._server = _Server((self.address, self.port), _Handler)
        self._server.model = self
        context = authority.server_context(self.name, self.address)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)

    def task(self, command, answer, tool=None):
        """Sets what it does next, and forgets who asked before."""
        self.command, self.answer, self.tool = command, answer, tool
        self.requests.clear()

    def requests_for(self, path):
        """The requests for a path, oldest first."""
        return [request for request in self.requests if request.path.split("?")[0] == path]

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, *_):
        """Programs that hang up early."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        self.request.settimeout(600)
        super().setup()

    def do_HEAD(self):
        self._note({})
        self._answer(200, b"")

    def do_GET(self):
        self._note({})
        self._answer(404, b'{"error": {"type": "not_found_error", "message": "only one task is known here"}}')

    def do_POST(self):
        model = self.server.model
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        self._note(body)
        path = self.path.split("?")[0]
        dialect = _DIALECTS.get(path)
        if dialect is None:
            return self._answer(404, b'{"error": {"type": "not_found_error", "message": "no such path"}}')
        if not dialect.is_authorised(self.headers, model.keys):
            return self._answer(401, b'{"error": {"type": "authentication_error", "message": "this is not the key"}}')
        events = dialect.events(body, model)
        text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
        self._answer(200, text.encode(), "text/event-stream")

    def _note(self, body):
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.model.requests.append(Request(self.command, self.path, headers, body))

    def _answer(self, status, body, kind="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass
