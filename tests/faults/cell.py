"""One cell of the matrix: a verb under a fault, and what must hold afterwards."""

import httpx

from api import describe_reply
from waiting import wait_for

# What a caller may get while something is broken. A program can act on each of these; anything else is a defect.
TYPED = {
    404: {"sandbox_not_found", "not_found", "file_not_found"},
    408: {"timed_out"},
    409: {"conflict", "busy"},
    422: {"unsupported"},
    429: {"rate_limited"},
    501: {"unsupported"},
    502: {"provider_failed", "agent_failed"},
    503: {"unavailable", "no_capacity", "busy"},
    504: {"timed_out"},
    507: {"no_space", "no_capacity"},
}
# Rows that somebody works at. None may stay.
TEMPORARY = ("creating", "deleting", "pausing", "resuming")
# A debug build on two busy cores; nothing is measured by this.
TIMEOUT = 120.0


class Cell:
    """`is_settled` and the helpers insist: after the fault everything must work again without anybody's help."""

    def __init__(self, server):
        self.server = server
        self.api = server.api()
        self.created = []

    def close(self):
        for sandbox in self.created:
            self.api.remove(sandbox)
        self.api.close()

    @staticmethod
    def body(**more):
        return {"memory_limit": "256m", **more}

    def make(self, **more):
        created = self.until_ok(lambda: self.api.post("/sandboxes/create", self.body(**more)))["sandbox_id"]
        self.created.append(created)
        return created

    def remove(self, sandbox):
        self.api.remove(sandbox)
        self.created.remove(sandbox)

    def provider_id(self, sandbox):
        """What the engine calls a sandbox."""
        return self.api.info(sandbox)["provider_sandbox_id"]

    def run(self, sandbox, command):
        body = {"sandbox_id": sandbox, "command": command}
        ran = self.until_ok(lambda: self.api.post("/sandboxes/run-command", body))
        assert ran["exit_code"] == 0, ran
        return ran["stdout"]

    def read(self, sandbox, path):
        return self.until_ok(lambda: self.api.post("/sandboxes/read-file", {"sandbox_id": sandbox, "path": path}))["content"]

    def until_ok(self, request, exists_is_fine=False, is_gone_fine=False):
        """The JSON of an answer of 200, which must come; what says «not now» meanwhile is typed."""
        replies = []

        def is_ok():
            try:
                replies.append(request())
            except httpx.TransportError:
                return False
            reply = replies[-1]
            if reply.status_code == 200 or (exists_is_fine and reply.status_code == 409 and "exists" in reply.text):
                return True
            if is_gone_fine and reply.status_code == 404:
                return True
            assert_typed(reply)
            return False

        wait_for(is_ok, lambda: describe_reply(replies[-1]) if replies else "the server answers", TIMEOUT)
        return replies[-1].json()

    def check_nothing_is_stuck(self):
        """The server is well, no row is on its way for ever, and a whole life works."""
        wait_for(lambda: self.health()["status"] == "healthy", lambda: f"healthy again: {self.health()}", TIMEOUT)
        stuck = lambda: [one for one in self.api.all() if one["status"] in TEMPORARY]  # noqa: E731
        wait_for(lambda: not stuck(), lambda: f"nothing is stuck: {stuck()}", TIMEOUT)
        other = self.make()
        assert self.run(other, "echo alive") == "alive\n"
        self.remove(other)

    def health(self):
        try:
            return self.api.http.get("/health", timeout=30).json()
        except httpx.TransportError as error:
            return {"status": f"no answer: {error!r}"}


def assert_typed(reply):
    """A refusal names its kind and its reason."""
    body = reply.json() if "json" in reply.headers.get("content-type", "") else {}
    assert body.get("code") in TYPED.get(reply.status_code, ()), describe_reply(reply)
    assert len(body.get("detail", "")) > 10, describe_reply(reply)
