"""PROJECT_NAME: a page and a small API, with Python's own library only."""

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGE = """<!doctype html>
<html lang="en">
  <head><meta charset="utf-8"><title>PROJECT_NAME</title></head>
  <body><h1>PROJECT_NAME</h1><p id="hello"></p>
    <script>
      fetch("api/hello").then((answer) => answer.json()).then((hello) => {
        document.querySelector("#hello").textContent = hello.message;
      });
    </script>
  </body>
</html>
"""


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/":
            self.answer(200, "text/html; charset=utf-8", PAGE)
        elif self.path == "/api/hello":
            self.answer(200, "application/json", json.dumps({"message": "hello"}))
        else:
            self.answer(404, "application/json", json.dumps({"error": "not found"}))

    def answer(self, status, content_type, text):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    port = int(os.environ.get("PORT", "3000"))
    print(f"listening on port {port}", flush=True)
    ThreadingHTTPServer(("0.0.0.0", port), Handler).serve_forever()
