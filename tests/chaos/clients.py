"""Clients that use a server which keeps dying, and remember every promise it made.

A promise is a 200. What was asked and not answered is asked again: creates with the same idempotency key, deletes as they
are. So at the end nothing is unknown: a sandbox either was promised and must be there, or its deletion was promised and it
must be gone.
"""

import asyncio
import random
import secrets

import httpx

# Counts once a second without ever forking, so that hundreds of them cost nothing.
COUNTER = "mkfifo /tmp/clock; exec 9<>/tmp/clock; while :; do echo . >> /home/user/counted; read -rt 1 -u 9; done"
# What a dying, starting or busy server may say instead of an answer.
BUSY = {408, 409, 429, 503}
# Before it is asked again. Fifty clients that knock all the time would keep it from starting.
PAUSE = 0.2


class Promised:
    """What a server promised about one sandbox."""

    def __init__(self, sandbox, client):
        self.id, self.client = sandbox, client
        self.files = {}
        self.counter_pid = None
        self.is_deleted = False


class Broken(AssertionError):
    """A promise that was not kept, or an answer that must not be."""


class Client:
    """One of many. Works on sandboxes of its own until told to stop."""

    LIMIT = 3

    def __init__(self, number, url, seed):
        self.number = number
        self.random = random.Random(f"{seed}-{number}")
        self.http = httpx.AsyncClient(base_url=url, timeout=120, trust_env=False)
        self.sandboxes = []
        self.is_stopping = False
        self.answers = 0

    async def run(self):
        actions = [self.create, self.command, self.command, self.write, self.write, self.count, self.pause, self.delete]
        while not self.is_stopping:
            if not self.live():
                await self.create()
            else:
                await self.random.choice(actions)()
        await self.http.aclose()

    def live(self):
        return [sandbox for sandbox in self.sandboxes if not sandbox.is_deleted]

    def random_sandbox(self):
        return self.random.choice(self.live())

    # --- what it does

    async def create(self):
        if len(self.live()) >= self.LIMIT:
            return
        body = {"user_id": f"chaos-{self.number}", "memory_limit": "64m"}
        headers = {"Idempotency-Key": secrets.token_hex(16)}
        created = await self.insist("POST", "/sandboxes/create", body, headers=headers)
        self.sandboxes.append(Promised(created["sandbox_id"], self.number))

    async def command(self):
        sandbox = self.random_sandbox()
        word = secrets.token_hex(4)
        ran = await self.try_once("POST", "/sandboxes/run-command", {"sandbox_id": sandbox.id, "command": f"echo {word}"})
        if ran is not None and ran["output"] != word + "\n":
            raise Broken(f"a command of {sandbox.id} answered {ran}")

    async def write(self):
        sandbox = self.random_sandbox()
        # A new name each time: a write that was not answered may have happened or not.
        path, content = f"/home/user/{secrets.token_hex(6)}", secrets.token_hex(32)
        body = {"sandbox_id": sandbox.id, "path": path, "content": content}
        if await self.try_once("POST", "/sandboxes/write-file", body) is not None:
            sandbox.files[path] = content

    async def count(self):
        """Starts the one background process of a sandbox; one that was not answered gets no second one."""
        sandbox = self.random_sandbox()
        if sandbox.counter_pid is None:
            sandbox.counter_pid = 0
            body = {"sandbox_id": sandbox.id, "command": COUNTER, "background": True}
            started = await self.try_once("POST", "/sandboxes/run-command", body)
            if started is not None:
                sandbox.counter_pid = started["process_id"]

    async def pause(self):
        await self.try_once("POST", f"/sandboxes/{self.random_sandbox().id}/pause")

    async def delete(self):
        if self.random.random() < 0.5:
            return
        sandbox = self.random_sandbox()
        await self.insist("DELETE", f"/sandboxes/{sandbox.id}", is_gone_fine=True)
        sandbox.is_deleted = True

    # --- how it asks

    async def try_once(self, method, path, body=None, headers=None, is_gone_fine=False):
        """The answer, or None when there was none or the server had no time."""
        try:
            reply = await self.http.request(method, path, json=body, headers=headers)
        except httpx.HTTPError:
            # Nobody is there for a moment; others may go on.
            await asyncio.sleep(PAUSE)
            return None
        if reply.status_code == 200:
            self.answers += 1
            return reply.json()
        if reply.status_code == 404 and is_gone_fine:
            return {}
        if reply.status_code in BUSY:
            await asyncio.sleep(PAUSE)
            return None
        raise Broken(f"{method} {path} {body} answered {reply.status_code}: {reply.text[:300]}")

    async def insist(self, method, path, body=None, **options):
        while True:
            answer = await self.try_once(method, path, body, **options)
            if answer is not None:
                return answer
