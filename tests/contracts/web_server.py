"""A web server on this host: what the endpoints that fetch and send URLs talk to."""

import http.server
import threading


class WebServer:
    """Serves GET /file and GET /to?URL (a redirect), takes PUT /kept; remembers what it was asked."""

    def __init__(self):
        self.request_log = []
        self.stored = {}
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.authority = "127.0.0.1:%d" % self._server.server_address[1]
        self.url = f"http://{self.authority}"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


def _handler(web_server):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            web_server.request_log.append(self.path)
            if self.path.startswith("/to?"):
                self.send_response(302)
                self.send_header("Location", self.path.removeprefix("/to?"))
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self._answer(b"from outside" if self.path == "/file" else b"a secret of this host")

        def do_PUT(self):
            web_server.stored[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
            self._answer(b"")

        def _answer(self, body):
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    return Handler
