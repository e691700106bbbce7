"""Callers of a server whose Docker daemon comes and goes. They remember every promise: an answer of 200."""

import random
import secrets
import threading

import httpx

from api import stopwatch, describe_reply
from waiting import wait_for

# What a caller may hear while the daemon is away, with the word that tells it from everything else.
TYPED = {
    408: {"timed_out"},
    409: {"conflict", "busy"},
    429: {"rate_limited"},
    502: {"provider_failed", "agent_failed"},
    503: {"unavailable", "no_capacity", "busy"},
    504: {"timed_out"},
}


def is_typed(reply):
    """Whether a refusal is one that a program can act on."""
    return reply.status_code in TYPED and reply.json().get("code") in TYPED[reply.status_code]


class Caller(threading.Thread):
    """Makes, uses and deletes sandboxes of its own until told to stop. The first untyped answer is kept in `broken`."""

    def __init__(self, number, server, limit=2):
        super().__init__(daemon=True)
        self._chance = random.Random(f"daemon-{number}")
        self._api = server.api()
        self._api.http.timeout = httpx.Timeout(300)
        self._number, self._limit = number, limit
        self.is_stopping = threading.Event()
        self.files, self.deleted = {}, set()
        self.answers, self.refusals = 0, {}
        self.broken = None

    def run(self):
        try:
            while not self.is_stopping.is_set():
                live = [one for one in self.files if one not in self.deleted]
                action = self._chance.choice((self.do_create, self.do_write, self.do_write, self.do_command, self.do_delete))
                if not live or (action == self.do_create and len(live) < self._limit):
                    self.do_create()
                elif action != self.do_create:
                    action(self._chance.choice(live))
        except BaseException as error:
            self.broken = error

    def do_create(self):
        headers = {"Idempotency-Key": secrets.token_hex(16)}
        body = {"user_id": f"caller-{self._number}", "memory_limit": "128m"}
        # Asked with the same key until it is answered: then nothing is unknown.
        created = self._insist("POST", "/sandboxes/create", body, headers)
        self.files[created["sandbox_id"]] = {}

    def do_write(self, sandbox):
        path, content = f"/workspace/{secrets.token_hex(6)}", secrets.token_hex(16)
        body = {"sandbox_id": sandbox, "path": path, "content": content}
        if self._ask("POST", "/sandboxes/write-file", body) is not None:
            self.files[sandbox][path] = content

    def do_command(self, sandbox):
        word = secrets.token_hex(4)
        ran = self._ask("POST", "/sandboxes/run-command", {"sandbox_id": sandbox, "command": f"echo {word}"})
        # A command that was under way when its container died has not printed all.
        if ran is not None and ran["exit_code"] == 0:
            assert ran["output"] == f"{word}\n", ran

    def do_delete(self, sandbox):
        if self._chance.random() < 0.4:
            self._insist("DELETE", f"/sandboxes/{sandbox}", is_gone_fine=True)
            self.deleted.add(sandbox)

    def _insist(self, *call, **options):
        while True:
            answer = self._ask(*call, **options)
            if answer is not None:
                return answer

    def _ask(self, method, path, body=None, headers=None, is_gone_fine=False):
        reply = self._api.request(method, path, json=body, headers=headers)
        if reply.status_code == 200:
            self.answers += 1
            return reply.json()
        if reply.status_code == 404 and is_gone_fine:
            return {}
        assert is_typed(reply), describe_reply(reply)
        word = reply.json()["code"]
        self.refusals[word] = self.refusals.get(word, 0) + 1
        self.is_stopping.wait(0.2)
        return None


class Watcher(threading.Thread):
    """Uses an embedded sandbox of the same server all the time; everything must go well, whatever becomes of Docker."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self._api = server.api()
        self.sandbox = self._api.create(provider="embedded")
        self.is_stopping = threading.Event()
        self.seconds, self.broken = [], None

    def run(self):
        try:
            while not self.is_stopping.wait(0.05):
                elapsed = stopwatch()
                assert self._api.run(self.sandbox, "echo here")["output"] == "here\n"
                self.seconds.append(elapsed())
        except BaseException as error:
            self.broken = error

    def summary(self):
        ordered = sorted(self.seconds)
        at = lambda part: ordered[min(len(ordered) - 1, int(len(ordered) * part))] * 1000  # noqa: E731
        return f"{len(ordered)} calls of an embedded sandbox: p50 {at(0.5):.0f} ms, p99 {at(0.99):.0f} ms, max {at(1):.0f} ms"

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        if error[0] is None:
            # However busy the machine is: what went on beside it was seen more than once.
            wait_for(lambda: self.broken or len(self.seconds) > 3, "it is used all the time")
        self.is_stopping.set()
        self.join(300)
        if error[0] is None:
            assert self.broken is None, self.broken
        self._api.remove(self.sandbox)
        self._api.close()
