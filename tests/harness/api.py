"""A client of the native dialect that says at once what went wrong."""

import time

import httpx

# No test waits longer for one answer; most are ended before by their own limit, which says where they hang.
TIMEOUT = 300.0
# What a server says that has too much to do, or somebody else at work on the same sandbox; and how long that may last.
_NOT_NOW, _BUSY_FOR = (408, 409), 90.0


class Api:
    """One caller of one server. `key` is an API key or a login token; without one the caller is anonymous."""

    def __init__(self, url, key=None, **options):
        self.url = url
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        headers.update(options.pop("headers", {}))
        # What the environment says about proxies is not meant for a server on this host.
        self.http = httpx.Client(base_url=url, headers=headers, timeout=TIMEOUT, trust_env=False, **options)

    def close(self):
        self.http.close()

    def request(self, method, path, **options):
        return self.http.request(method, path, **options)

    def get(self, path, **options):
        return self.request("GET", path, **options)

    def post(self, path, body=None, **options):
        return self.request("POST", path, json=body, **options)

    def delete(self, path, **options):
        return self.request("DELETE", path, **options)

    def ok(self, method, path, body=None, **options):
        """The JSON of an answer that must be 200."""
        if body is not None:
            options["json"] = body
        return answer(self.request(method, path, **options))

    # --- verbs the tests need all the time

    def create(self, user_id="tester", **body):
        """Makes a sandbox and returns its id."""
        return self.ok("POST", "/sandboxes/create", {"user_id": user_id, **body})["sandbox_id"]

    def run(self, sandbox, command, **body):
        return self.ok("POST", "/sandboxes/run-command", {"sandbox_id": sandbox, "command": command, **body})

    def write(self, sandbox, path, content):
        return self.ok("POST", "/sandboxes/write-file", {"sandbox_id": sandbox, "path": path, "content": content})

    def read(self, sandbox, path):
        return self.ok("POST", "/sandboxes/read-file", {"sandbox_id": sandbox, "path": path})["content"]

    def status(self, sandbox):
        return self.ok("GET", f"/sandboxes/{sandbox}/status")["status"]

    def info(self, sandbox):
        return self.ok("GET", f"/sandboxes/{sandbox}/info")

    def pause(self, sandbox):
        return self.ok("POST", f"/sandboxes/{sandbox}/pause")

    def remove(self, sandbox):
        """Deletes a sandbox; one that is gone already is fine, and one that cannot be had just now is asked for again."""
        end = time.monotonic() + _BUSY_FOR
        while (reply := self.delete(f"/sandboxes/{sandbox}")).status_code in _NOT_NOW and time.monotonic() < end:
            time.sleep(0.1)
        assert reply.status_code in (200, 404), describe_reply(reply)

    def events(self, sandbox, kind=None):
        """What happened to a sandbox, oldest first; only of one kind if named."""
        events = self.ok("GET", f"/sandboxes/{sandbox}/events", params={"limit": 1000})["events"]
        return [event for event in events if kind in (None, event["kind"])]

    def all(self, **filters):
        """Every sandbox the caller may see, page by page."""
        found, cursor = [], None
        while True:
            parameters = {"limit": 500, **filters, **({"cursor": cursor} if cursor else {})}
            page = self.ok("GET", "/sandboxes", params=parameters)
            found += page["sandboxes"]
            cursor = page.get("next_cursor") or page.get("next")
            if not cursor:
                return found


def answer(reply):
    """The JSON of an answer that must be 200."""
    assert reply.status_code == 200, describe_reply(reply)
    return reply.json()


def describe_reply(reply):
    """An answer in words, for the message of a failed test."""
    return f"{reply.request.method} {reply.request.url} answered {reply.status_code}: {reply.text[:500]}"


def is_healthy(url, trust=True, fine=("healthy",)):
    try:
        reply = httpx.get(f"{url}/health", timeout=10, trust_env=False, verify=trust)
    except httpx.HTTPError:
        return False
    return reply.status_code == 200 and reply.json()["status"] in fine


def stopwatch():
    """A function that says how many seconds have passed since now."""
    started = time.monotonic()
    return lambda: time.monotonic() - started
