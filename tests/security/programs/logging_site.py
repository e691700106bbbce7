"""A web site to run inside a sandbox: it logs every request, accepts WebSockets, and lets pages of every origin read its answers.

Run as `python3 logging_site.py PORT TEXT LOG`.
"""

import base64
import hashlib
import http.server
import json
import sys

PORT, TEXT, LOG = int(sys.argv[1]), sys.argv[2].encode(), sys.argv[3]


class Site(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        with open(LOG, "a") as log:
            log.write(json.dumps([self.command, self.path, dict(self.headers)]) + "\n")
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Upgrade", "").lower() == "websocket":
            return self.accept_websocket()
        self.send_response(200)
        # As the servers of many frameworks do while a page is developed. Not below /strict, whose answers only its own pages read.
        if not self.path.startswith("/strict"):
            self.send_header("Access-Control-Allow-Origin", self.headers.get("Origin", "*"))
            self.send_header("Access-Control-Allow-Credentials", "true")
            self.send_header("Access-Control-Allow-Headers", "content-type")
        self.send_header("Set-Cookie", "of_the_site=1; Domain=box.test; Path=/")
        self.send_header("Set-Cookie", "sandyard_preview=forged; Path=/")
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(TEXT)))
        self.end_headers()
        self.wfile.write(TEXT)

    do_GET = do_POST = do_PUT = do_OPTIONS = answer

    def accept_websocket(self):
        digest = hashlib.sha1((self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode())
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(digest.digest()).decode())
        self.end_headers()
        self.wfile.write(bytes([0x81, len(TEXT)]) + TEXT)
        self.wfile.flush()
        self.rfile.read(2)
        self.close_connection = True

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Site).serve_forever()
