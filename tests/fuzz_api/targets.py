"""Sandboxes, users and keys to be shot at: there are always some, and never too many."""

import itertools
import os
import threading

from api import Api

# What fuzzing itself makes is removed beyond this, so that creating goes on working under the quota.
SPARED = 20
# Keys of this one are shot at, never the one in use.
OWNER_OF_KEYS = "target-of-keys"


class Targets:
    """Names of things that exist; whatever is destroyed is made anew. Every program has its own.

    `doomed` are sandboxes for what freezes or ends them, `sandboxes` for everything else: a command that is cut off because
    somebody deletes its sandbox tells nothing about the command.
    """

    def __init__(self, url, admin_key):
        self.api = Api(url, admin_key)
        self.lock = threading.Lock()
        self.sandboxes, self.doomed, self.users, self.keys = [], [], [], []
        me = self.api.ok("GET", "/api/v1/auth/me")
        me = me.get("data", me)
        # Whom and what we are ourselves, as it is named in paths.
        self.own_names = {me["name"], me["via"].rpartition(":")[2], OWNER_OF_KEYS}
        self._numbers = itertools.count()
        self._attempts = itertools.count()
        self._tending = threading.Lock()
        self.tend()

    def tend(self):
        """Makes what is missing and removes what is too much."""
        found = self.api.all()
        other_users = [one["sandbox_id"] for one in found if not one["user_id"].startswith("target-")]
        for sandbox in other_users[SPARED:]:
            self.api.delete(f"/sandboxes/{sandbox}")
        templates = self.api.ok("GET", "/templates")["templates"]
        for template in [one["name"] for one in templates if one["name"] != "host"][3:]:
            self.api.delete(f"/templates/{template}")
        sandboxes, doomed = self._sandboxes(found, "used", 3), self._sandboxes(found, "doomed", 2)
        users, keys = [self._user() for _ in range(2)], [self._key() for _ in range(2)]
        with self.lock:
            old_users, old_keys = self.users, self.keys
            self.sandboxes, self.doomed, self.users, self.keys = sandboxes, doomed, users, keys
        for user in old_users:
            self.api.delete(f"/users/{user}")
        for key in old_keys:
            self.api.delete(f"/keys/{key}")

    def tend_sometimes(self, every=150):
        """To be called with each request; does the work once in a while, in the thread that comes along."""
        if next(self._attempts) % every == every - 1 and self._tending.acquire(blocking=False):
            try:
                self.tend()
            finally:
                self._tending.release()

    def _sandboxes(self, targets_found, purpose, count):
        owner = f"target-{os.getpid()}-{purpose}"
        there = [one["sandbox_id"] for one in targets_found if one["user_id"] == owner and one["status"] in ("running", "paused")]
        return there[:count] + [self._sandbox(owner) for _ in range(count - len(there))]

    def _sandbox(self, owner):
        while True:
            sandbox = self.api.create(user_id=owner, memory_limit="128m")
            written = self.api.post("/sandboxes/write-file", {"sandbox_id": sandbox, "path": "/home/user/file", "content": "x"})
            if written.status_code == 200:
                return sandbox
            # The other program has found it in a list already, and shot at it.
            assert written.status_code in (404, 409), written.text

    def _user(self):
        # Without a password, which would take its time.
        name = f"target-{os.getpid()}-{next(self._numbers)}"
        self.api.ok("POST", "/users", {"name": name, "role": "user"})
        return name

    def _key(self):
        return self.api.ok("POST", "/keys", {"name": "target", "user": OWNER_OF_KEYS})["id"]
