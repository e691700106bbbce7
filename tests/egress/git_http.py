"""Git over HTTP as a server speaks it: the real `git http-backend`, called as it wants to be (git-http-backend(1))."""

import base64
import os
import subprocess


def make_repository(folder, name):
    """A repository with one file, `hello`, and one commit."""
    location = folder / name
    quiet = {"check": True, "capture_output": True, "env": {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(folder)}}
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", location], **quiet)
    blob = _feed(location, ["hash-object", "-w", "--stdin"], b"from the repository\n")
    tree = _feed(location, ["mktree"], b"100644 blob " + blob + b"\thello\n")
    author = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    commit = _feed(location, [*author, "commit-tree", tree.decode(), "-m", "one"], b"")
    subprocess.run(["git", "-C", location, "update-ref", "refs/heads/main", commit.decode()], **quiet)
    return location


def _feed(location, arguments, data):
    done = subprocess.run(["git", "-C", location, *arguments], input=data, capture_output=True, check=True)
    return done.stdout.strip()


def serve(handler):
    """Answers a request below `/git/`, or `/private/git/` if the site's password came with it."""
    site = handler.server.site
    path, _, query = handler.path.partition("?")
    size = int(handler.headers.get("Content-Length", 0))
    body = handler.rfile.read(size)
    if path.startswith("/private/") and _password(handler) != site.password:
        return handler.answer(b"", 401, [("WWW-Authenticate", 'Basic realm="tests"')])
    environment = {
        "PATH": os.environ["PATH"],
        "GIT_PROJECT_ROOT": str(site.repositories),
        "GIT_HTTP_EXPORT_ALL": "1",
        # The tests own the folder, whatever user they run as.
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
        "GIT_PROTOCOL": handler.headers.get("Git-Protocol", ""),
        "REQUEST_METHOD": handler.command,
        "PATH_INFO": path.partition("/git")[2],
        "QUERY_STRING": query,
        "CONTENT_TYPE": handler.headers.get("Content-Type", ""),
        "CONTENT_LENGTH": str(size),
        "HTTP_CONTENT_ENCODING": handler.headers.get("Content-Encoding", ""),
    }
    done = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True, timeout=120)
    head, _, content = done.stdout.partition(b"\r\n\r\n")
    headers = [tuple(line.split(": ", 1)) for line in head.decode().splitlines()]
    status = next((int(value.split()[0]) for name, value in headers if name == "Status"), 200)
    handler.answer(content, status, [(name, value) for name, value in headers if name != "Status"])


def _password(handler):
    kind, _, value = handler.headers.get("Authorization", "").partition(" ")
    if kind != "Basic":
        return None
    return base64.b64decode(value).decode().partition(":")[2]
