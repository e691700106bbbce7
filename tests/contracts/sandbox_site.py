"""A web site to run inside a sandbox: pages, a stream of events, a WebSocket that says everything back.

Plain standard library, because a sandbox has no more. Run as `python3 sandbox_site.py PORT`.
"""

import base64
import hashlib
import http.server
import json
import struct
import sys
import time


class Site(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.headers.get("Upgrade", "").lower() == "websocket":
            return self.websocket()
        if self.path.startswith("/sse"):
            return self.events()
        self.answer({"method": "GET", "path": self.path, "headers": dict(self.headers)})

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.answer({"method": "POST", "path": self.path, "size": len(body), "sha256": hashlib.sha256(body).hexdigest()})

    def answer(self, value, status=200):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def events(self):
        """One event at once and the next only when the client has said that it saw the first."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for number in range(3):
            self.wfile.write(f"data: event {number}\n\n".encode())
            self.wfile.flush()
            while number < 2 and number not in seen:
                time.sleep(0.01)
        self.close_connection = True

    def websocket(self):
        digest = hashlib.sha1((self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode())
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(digest.digest()).decode())
        self.end_headers()
        self.close_connection = True
        while True:
            head = self.rfile.read(2)
            if len(head) < 2:
                return
            kind, length = head[0] & 0x0F, head[1] & 0x7F
            if length == 126:
                length = struct.unpack(">H", self.rfile.read(2))[0]
            elif length == 127:
                length = struct.unpack(">Q", self.rfile.read(8))[0]
            mask = self.rfile.read(4)
            data = bytes(byte ^ mask[at % 4] for at, byte in enumerate(self.rfile.read(length)))
            size = bytes([len(data)]) if len(data) < 126 else b"\x7e" + struct.pack(">H", len(data))
            self.wfile.write(bytes([0x80 | kind]) + size + data)
            self.wfile.flush()
            if kind == 8:
                return

    def do_PUT(self):
        """`PUT /seen/N`: the client has seen event N."""
        seen.add(int(self.path.rpartition("/")[2]))
        self.answer({})

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    # A hundred may knock at once, and none is to be kept waiting by the kernel.
    request_queue_size = 1024


seen = set()

if __name__ == "__main__":
    Server(("0.0.0.0", int(sys.argv[1])), Site).serve_forever()
