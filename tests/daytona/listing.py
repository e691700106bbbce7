"""The list of sandboxes: filters, order and pages."""

import json

from errors import bad_request


async def list_sandboxes(cloud, request, body):
    query = request.query
    limit = int(query.get("limit", 100))
    if not 1 <= limit <= 200:
        raise bad_request("limit must be from 1 to 200")
    found = [record["dto"] for record in cloud.sandboxes.all.values() if _is_meant(record["dto"], query)]
    field = _SORTED_BY.get(query.get("sort", "createdAt"))
    if field is None:
        raise bad_request("sort: no such field")
    found.sort(key=lambda dto: (dto[field], dto["id"]), reverse=query.get("order", "desc") == "desc")
    ids = [dto["id"] for dto in found]
    if cursor := query.get("cursor"):
        # The last of the page before may be gone by now; the cursor carries its place too.
        location, _, last = cursor.partition(":")
        found = found[ids.index(last) + 1 :] if last in ids else found[int(location) :]
        past = int(location)
    else:
        past = 0
    page, more = found[:limit], len(found) > limit
    entries = [{name: value for name, value in dto.items() if name not in _NOT_LISTED} for dto in page]
    return {"items": entries, "nextCursor": f"{past + limit}:{page[-1]['id']}" if more else None}


_SORTED_BY = {
    "name": "name",
    "cpu": "cpu",
    "memoryGib": "memory",
    "diskGib": "disk",
    "lastActivityAt": "lastActivityAt",
    "createdAt": "createdAt",
}
_NOT_LISTED = {"env", "kvm", "volumes", "backupCreatedAt"}


def _is_meant(dto, query):
    try:
        labels = json.loads(query.get("labels", "{}"))
    except ValueError:
        raise bad_request("labels must be a JSON object") from None
    states = query.getall("states", [])
    checks = (
        dto["state"] != "destroyed",
        all(dto["labels"].get(name) == value for name, value in labels.items()),
        not states or dto["state"] in states,
        dto["id"].startswith(query.get("id", "")),
        dto["name"].startswith(query.get("name", "")),
        "snapshots" not in query or dto["snapshot"] in query.getall("snapshots"),
        "regionIds" not in query or dto["target"] in query.getall("regionIds"),
        "isPublic" not in query or dto["public"] == (query["isPublic"].lower() == "true"),
    )
    return all(checks)
