"""Snapshots: what sandboxes start from. One that was made of a sandbox holds its files; the others are this host's programs."""

import asyncio
import uuid

from backing import TEMPLATE
from control import ORGANIZATION, TARGET
from errors import Problem, bad_request, conflict, not_found, now

DEFAULT = "daytona-small"
MACHINE = "daytona-vm-small"
_BEING_MADE = ("pending", "building")


class Snapshots:
    def __init__(self, store, backing, moment):
        self._store, self._backing, self._moment = store, backing, moment
        self.default = DEFAULT
        for name, kind in ((DEFAULT, "container"), (MACHINE, "linux-vm")):
            store.snapshots.setdefault(name, _snapshot(name, general=True, sandboxClass=kind, state="active"))

    def find(self, id_or_name):
        for snapshot in self._store.snapshots.values():
            if id_or_name in (snapshot["id"], snapshot["name"]):
                return snapshot
        raise not_found(f"Snapshot {id_or_name} not found")

    def usable(self, name):
        """The snapshot a new sandbox asked for."""
        try:
            snapshot = self.find(name or DEFAULT)
        except Problem:
            raise bad_request(f"Snapshot {name} not found") from None
        if snapshot["state"] != "active":
            raise bad_request(f"Snapshot {name} is {snapshot['state']}")
        snapshot["lastUsedAt"] = now()
        return snapshot

    def all(self):
        return sorted(self._store.snapshots.values(), key=lambda snapshot: snapshot["createdAt"], reverse=True)

    def add(self, name, **fields):
        if name in self._store.snapshots:
            raise conflict(f"Snapshot with name {name} already exists")
        self._store.snapshots[name] = _snapshot(name, **fields)
        self._store.save()
        return self._store.snapshots[name]

    def from_sandbox(self, name, dto):
        """Adds the snapshot of a sandbox; its template in the backing server is still to be made."""
        native = f"snapshot-{uuid.uuid4().hex[:12]}"
        sizes = {"cpu": dto["cpu"], "mem": dto["memory"], "disk": dto["disk"]}
        kind = {"sourceSandboxId": dto["id"], "sandboxClass": dto["sandboxClass"]}
        self.add(name, state="snapshotting", template=native, **sizes, **kind)
        return native

    def unfinished(self):
        """Those that were still being made when the last process ended."""
        return [snapshot for snapshot in self._store.snapshots.values() if snapshot["state"] in _BEING_MADE]

    async def activate(self, snapshot):
        """From an image: pulled, then active. Images cannot be fetched here, so its files are the default's."""
        await asyncio.sleep(self._moment)
        if snapshot["state"] in _BEING_MADE:
            snapshot["state"] = "active"
            self._store.save()

    async def remove(self, snapshot):
        if snapshot["general"]:
            raise bad_request("This snapshot is not yours")
        self._store.snapshots.pop(snapshot["name"], None)
        self._store.save()
        if snapshot["template"] != TEMPLATE:
            await self._backing.call("DELETE", f"/templates/{snapshot['template']}")


def _snapshot(name, **fields):
    plain = {
        "id": str(uuid.uuid4()),
        "organizationId": ORGANIZATION,
        "general": False,
        "name": name,
        "imageName": None,
        "size": 0.1,
        "entrypoint": None,
        "cpu": 1,
        "gpu": 0,
        "mem": 1,
        "disk": 3,
        "errorReason": None,
        "createdAt": now(),
        "updatedAt": now(),
        "lastUsedAt": None,
        "regionIds": [TARGET],
        "sourceSandboxId": None,
        "sandboxClass": "container",
        "template": TEMPLATE,
    }
    return {**plain, **fields}


def _to_json(snapshot):
    return {name: value for name, value in snapshot.items() if name != "template"}


# --- operations


async def get_all_snapshots(cloud, request, body):
    query = request.query
    page, limit = int(query.get("page", 1)), int(query.get("limit", 100))
    if page < 1 or not 1 <= limit <= 200:
        raise bad_request("page must be at least 1 and limit from 1 to 200")
    found = [
        snapshot
        for snapshot in cloud.snapshots.all()
        if query.get("name", "") in snapshot["name"] and query.get("sourceSandboxId") in (None, snapshot["sourceSandboxId"])
    ]
    items = [_to_json(snapshot) for snapshot in found[(page - 1) * limit : page * limit]]
    return {"items": items, "total": len(found), "page": page, "totalPages": -(-len(found) // limit)}


async def get_snapshot(cloud, request, body):
    return _to_json(cloud.snapshots.find(request.match_info["id"]))


async def create_snapshot(cloud, request, body):
    if not body.image_name and not body.build_info:
        raise bad_request("Either an image or build information is required")
    sizes = {"cpu": body.cpu or 1, "mem": body.memory or 1, "disk": body.disk or 3}
    state = "building" if body.build_info else "pending"
    snapshot = cloud.snapshots.add(body.name, imageName=body.image_name, entrypoint=body.entrypoint, state=state, **sizes)
    cloud.sandboxes.spawn(cloud.snapshots.activate(snapshot))
    return _to_json(snapshot)


async def remove_snapshot(cloud, request, body):
    await cloud.snapshots.remove(cloud.snapshots.find(request.match_info["id"]))


async def activate_snapshot(cloud, request, body):
    snapshot = cloud.snapshots.find(request.match_info["id"])
    if snapshot["state"] != "inactive":
        raise bad_request(f"Snapshot is {snapshot['state']}")
    snapshot["state"] = "active"
    cloud.store.save()
    return _to_json(snapshot)


async def deactivate_snapshot(cloud, request, body):
    cloud.snapshots.find(request.match_info["id"])["state"] = "inactive"
    cloud.store.save()
