"""The sandboxes: what is known of each, how its state changes, and what time does to it."""

import asyncio
import datetime
import logging
import secrets
import time
import uuid

from backing import HOME, TEMPLATE, USER, NativeError
from errors import bad_request, conflict, not_found, now, stamp

log = logging.getLogger("counterpart")

# Where each state on the way leads.
_LEADS_TO = {
    "creating": "started",
    "starting": "started",
    "restoring": "started",
    "resuming": "started",
    "stopping": "stopped",
    "pausing": "paused",
    "archiving": "archived",
    "resizing": "started",
    "snapshotting": "started",
    "destroying": "destroyed",
}
_HIDDEN = {"destroyed"}


class Sandboxes:
    """All sandboxes. `moment` is the least time a change takes, `minute` how long a minute is."""

    def __init__(self, cloud, moment, minute):
        self._cloud, self._backing, self._store, self._events = cloud, cloud.backing, cloud.store, cloud.events
        self._moment, self._minute = moment, minute
        self._tasks, self._touched = set(), False
        self.all = cloud.store.sandboxes

    def resume(self):
        """Goes on with what was under way when the last process ended, and begins to watch the time."""
        for record in list(self.all.values()):
            state = record["dto"]["state"]
            if state in _LEADS_TO:
                self.spawn(self._change(record, state, record.get("goal") or _LEADS_TO[state]))
        for snapshot in self._cloud.snapshots.unfinished():
            self.spawn(self._cloud.snapshots.activate(snapshot))
        self.spawn(self._watch())

    async def close(self):
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # --- looking

    def find(self, id_or_name):
        """By id or name; those that are gone are not found."""
        for record in self.all.values():
            if id_or_name in (record["dto"]["id"], record["dto"]["name"]) and record["dto"]["state"] not in _HIDDEN:
                return record
        raise not_found(f"Sandbox with ID or name {id_or_name} not found")

    def started(self, id_or_name):
        record = self.find(id_or_name)
        if record["dto"]["state"] != "started":
            raise bad_request(f"Sandbox {id_or_name} is not started: it is {record['dto']['state']}")
        return record

    def touch(self, record):
        """Activity: the time until auto-stop begins anew."""
        record["active"], self._touched = time.time(), True
        record["dto"]["lastActivityAt"] = now()

    # --- changing

    async def create(self, dto, ask, fork_of=None):
        """Adds a sandbox and makes it in the background. `ask` is what the backing server is asked for."""
        name = dto.get("name")
        if name and any(other["dto"]["name"] == name and other["dto"]["state"] != "destroyed" for other in self.all.values()):
            raise conflict(f"Sandbox with name {name} already exists")
        identity = dto.get("id") or str(uuid.uuid4())
        times = {"createdAt": now(), "updatedAt": now(), "lastActivityAt": now()}
        fixed = {"id": identity, "name": name or identity, "user": dto.get("user") or USER}
        record = {
            "dto": {**dto, **fixed, **times, "state": "creating", "desiredState": "started"},
            "ask": ask,
            "fork_of": fork_of,
            "native": None,
            "token": secrets.token_urlsafe(24),
            "signing_key": secrets.token_hex(32),
            "signed": {},
            "previews": {},
            "sessions": {},
            "env": {},
            "born": time.time(),
            "active": time.time(),
            "since": time.time(),
        }
        self.all[identity] = record
        self._store.save()
        await self._events.created(record["dto"])
        self.spawn(self._change(record, "creating", "started"))
        return record

    async def begin(self, record, state, goal, *, allowed):
        """Starts a change of state; refused while another is under way or from where it does not lead."""
        at = record["dto"]["state"]
        if at in _LEADS_TO and state != "destroying":
            raise conflict(f"Sandbox {record['dto']['id']} changes its state: it is {at}")
        if at not in allowed:
            raise bad_request(f"Sandbox is not in a valid state: it is {at}, expected {' or '.join(sorted(allowed))}")
        await self._enter(record, state)
        record["goal"] = goal
        record["dto"]["desiredState"] = goal if goal in ("started", "stopped", "archived", "paused", "destroyed") else "started"
        self._store.save()
        self.spawn(self._change(record, state, goal))

    async def stop(self, record):
        await self.begin(record, "stopping", "stopped", allowed={"started", "paused", "error"})

    async def destroy(self, record):
        if record["dto"]["state"] != "destroying":
            allowed = set(_LEADS_TO) | {"started", "stopped", "archived", "paused", "error"}
            await self.begin(record, "destroying", "destroyed", allowed=allowed)

    async def fail(self, record, reason, recoverable):
        record["dto"].update(errorReason=reason, recoverable=recoverable)
        await self._enter(record, "error")

    def spawn(self, work):
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _enter(self, record, state):
        before, record["dto"]["state"] = record["dto"]["state"], state
        record["dto"]["updatedAt"] = now()
        record["since"] = time.time()
        self._store.save()
        await self._events.changed(record["dto"], before, state)

    async def _change(self, record, state, goal):
        try:
            await asyncio.sleep(self._moment)
            await _DO[state](self, record)
        except (NativeError, OSError) as error:
            log.exception("sandbox %s: %s", record["dto"]["id"], state)
            if record["dto"]["state"] == state:
                await self.fail(record, str(error), False)
            return
        if record["dto"]["state"] != state:
            return
        await self._enter(record, goal)
        if goal == "destroyed":
            self.all.pop(record["dto"]["id"], None)
            self._cloud.previews.forget(record)
            self._store.save()
        if goal == "stopped" and record["dto"].get("autoDeleteInterval") == 0:
            await self.destroy(record)

    async def _make(self, record):
        if not record["native"] and record["fork_of"]:
            forked = await self._backing.post(f"/sandboxes/{record['fork_of']}/fork")
            record["native"] = forked["sandbox_id"]
        elif not record["native"]:
            ask = {"template": TEMPLATE, **record["ask"]}
            record["native"] = await self._backing.create(ask, key=record["dto"]["id"])
        self._store.save()
        if record["dto"]["state"] != "creating":
            # Deleted while it was being made.
            await self._remove(record)
        # However long that took, nobody could use it until now.
        self.touch(record)

    async def _start(self, record):
        await self._backing.post(f"/sandboxes/{record['native']}/resume")
        # A preview's token is good until the sandbox starts anew.
        if record["dto"]["state"] != "resuming":
            record["token"] = secrets.token_urlsafe(24)
        record["dto"].pop("errorReason", None)
        record["dto"]["recoverable"] = False
        self.touch(record)

    async def _stop(self, record):
        record["sessions"].clear()
        await self._backing.stop(record["native"])

    async def _pause(self, record):
        await self._backing.post(f"/sandboxes/{record['native']}/pause")

    async def _archive(self, record):
        record["dto"]["backupState"] = "Completed"

    async def _snapshot(self, record):
        name, native = record["snapshot_asked"]
        if native not in await self._backing.templates():
            await self._backing.post(f"/sandboxes/{record['native']}/snapshot", {"name": native})
        self._store.snapshots[name]["state"] = "active"

    async def _nothing(self, record):
        pass

    async def _remove(self, record):
        # What is still being made is removed when it is there.
        if record["native"]:
            await self._backing.remove(record["native"])

    # --- time

    async def _watch(self):
        while True:
            await asyncio.sleep(min(1.0, self._minute / 10))
            for record in list(self.all.values()):
                try:
                    await self._let_time_pass(record)
                except Exception:
                    log.exception("the timers of %s", record["dto"]["id"])
            if self._touched:
                self._touched = False
                self._store.save()

    async def _let_time_pass(self, record):
        dto = record["dto"]
        state, idle = dto["state"], (time.time() - record["active"]) / self._minute
        lasted = (time.time() - record["since"]) / self._minute
        until = record.get("destroy_at")
        if state in _LEADS_TO:
            return
        if until and time.time() > until:
            await self.destroy(record)
        elif state == "started" and 0 < (dto.get("autoStopInterval") or 0) <= idle:
            await self.stop(record)
        elif state == "started" and 0 < (dto.get("autoPauseInterval") or 0) <= idle:
            await self.begin(record, "pausing", "paused", allowed={"started"})
        elif state in ("stopped", "archived") and 0 < (dto.get("autoDeleteInterval") or 0) <= lasted:
            await self.destroy(record)
        elif state == "stopped" and 0 < (dto.get("autoArchiveInterval") or 0) <= lasted:
            await self.begin(record, "archiving", "archived", allowed={"stopped"})

    def live_for(self, record, minutes):
        """The time to live, from creation on; 0 is for ever."""
        record["destroy_at"] = record["born"] + minutes * self._minute if minutes else None
        at = datetime.datetime.fromtimestamp(record["destroy_at"], datetime.UTC) if minutes else None
        record["dto"]["autoDestroyAt"] = stamp(at) if at else None

    # --- what the toolbox needs

    @staticmethod
    def absolute(path):
        """A path as the toolbox reads it: what is not absolute is below the working directory."""
        return path if path.startswith("/") else f"{HOME}/{path}"


_DO = {
    "creating": Sandboxes._make,
    "starting": Sandboxes._start,
    "restoring": Sandboxes._start,
    "resuming": Sandboxes._start,
    "stopping": Sandboxes._stop,
    "pausing": Sandboxes._pause,
    "archiving": Sandboxes._archive,
    "resizing": Sandboxes._nothing,
    "snapshotting": Sandboxes._snapshot,
    "destroying": Sandboxes._remove,
}
