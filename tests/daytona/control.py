"""The control plane: one function for each operation on sandboxes, called as the generated client calls it."""

import secrets

from errors import bad_request, conflict

ORGANIZATION = "00000000-0000-4000-8000-000000000001"
TARGET = "us"
MAX_ARCHIVE = 43200
_DEFAULTS = {"cpu": 1, "memory": 1, "disk": 3}


def _found(yard, request):
    match = request.match_info
    return yard.sandboxes.find(match.get("sandboxIdOrName") or match["sandboxId"])


def _whole(request, name):
    """A whole number in the path."""
    try:
        return int(request.match_info[name])
    except ValueError:
        raise bad_request(f"{name} must be a whole number") from None


def _saved(yard, record):
    yard.store.save()
    return record["dto"]


async def create_sandbox(yard, request, body):
    if body.build_info and body.snapshot:
        raise bad_request("Cannot specify both a snapshot and build information")
    if not body.build_info and (body.cpu or body.memory or body.disk):
        raise bad_request("Cannot specify Sandbox resources when using a snapshot")
    if body.auto_stop_interval and body.auto_pause_interval:
        raise bad_request("At most one of autoStopInterval and autoPauseInterval may be non-zero")
    snapshot = yard.snapshots.usable(body.snapshot) if not body.build_info else None
    kind = snapshot["sandboxClass"] if snapshot else "container"
    if body.auto_pause_interval and kind != "linux-vm":
        raise bad_request("Sandboxes of this class cannot be paused")
    lifespan = _lifespan(yard, body.ttl_minutes)
    default = {"cpu": snapshot["cpu"], "memory": snapshot["mem"], "disk": snapshot["disk"]} if snapshot else _DEFAULTS
    sizes = {name: getattr(body, name) or default[name] for name in _DEFAULTS}
    dto = {
        "organizationId": ORGANIZATION,
        "name": body.name,
        "snapshot": snapshot["name"] if snapshot else None,
        "user": body.user,
        "env": body.env or {},
        "labels": body.labels or {},
        "public": bool(body.public),
        "networkBlockAll": bool(body.network_block_all),
        "networkAllowList": body.network_allow_list,
        "domainAllowList": body.domain_allow_list,
        "kvm": bool(body.kvm),
        "target": body.target or TARGET,
        **sizes,
        "gpu": 0,
        **_when_idle(kind, body),
        "autoArchiveInterval": body.auto_archive_interval or (10080 if body.auto_archive_interval is None else MAX_ARCHIVE),
        "autoDeleteInterval": -1 if body.auto_delete_interval is None else body.auto_delete_interval,
        "sandboxClass": kind,
        "toolboxProxyUrl": yard.toolbox_url,
        "volumes": [],
    }
    ask = {
        "env": body.env or {},
        "cpu_limit": sizes["cpu"],
        "memory_limit": f"{sizes['memory']}g",
        "disk_limit": f"{sizes['disk']}g",
        "network": network_of(dto),
        **({"template": snapshot["template"]} if snapshot else {}),
    }
    record = await yard.sandboxes.create(dto, ask)
    if lifespan:
        yard.sandboxes.live_for(record, lifespan)
    return _saved(yard, record)


def _when_idle(kind, body):
    """The intervals: where neither is asked for, what can be paused is, and all else is stopped."""
    stop, pause = body.auto_stop_interval, body.auto_pause_interval
    if stop is None and pause is None:
        stop, pause = (0, 60) if kind == "linux-vm" else (15, 0)
    elif stop is None:
        stop = 0 if pause else 15
    return {"autoStopInterval": stop, "autoPauseInterval": pause or 0}


def _lifespan(yard, minutes):
    """How long a sandbox lives at most; an organization may have a bound that nobody gets around."""
    most = yard.lifespan
    if most and minutes is not None and not 0 < minutes <= most:
        raise bad_request(f"ttlMinutes must be from 1 to {most}: the organization has a maximum sandbox lifespan")
    return minutes if minutes is not None else most


def network_of(dto):
    """What the backing server is told of a sandbox's way out."""
    addresses = [word.strip() for word in (dto.get("networkAllowList") or "").split(",") if word.strip()]
    domains = [word.strip() for word in (dto.get("domainAllowList") or "").split(",") if word.strip()]
    if dto["networkBlockAll"]:
        return {"allow_internet_access": False}
    if addresses or domains:
        return {"allow_out": addresses + domains, "deny_out": ["0.0.0.0/0"]}
    return {"allow_internet_access": True}


async def get_sandbox(yard, request, body):
    return _found(yard, request)["dto"]


async def delete_sandbox(yard, request, body):
    record = _found(yard, request)
    await yard.sandboxes.destroy(record)
    return _saved(yard, record)


async def start_sandbox(yard, request, body):
    record = _found(yard, request)
    state = record["dto"]["state"]
    way = {"archived": "restoring", "paused": "resuming"}.get(state, "starting")
    if state != "started":
        await yard.sandboxes.begin(record, way, "started", allowed={"stopped", "archived", "paused"})
    return _saved(yard, record)


async def stop_sandbox(yard, request, body):
    record = _found(yard, request)
    if record["dto"]["state"] != "stopped":
        await yard.sandboxes.stop(record)
    return _saved(yard, record)


async def pause_sandbox(yard, request, body):
    record = _found(yard, request)
    if record["dto"]["sandboxClass"] != "linux-vm":
        raise bad_request("Sandboxes of this class cannot be paused")
    if record["dto"]["state"] != "paused":
        await yard.sandboxes.begin(record, "pausing", "paused", allowed={"started"})
    return _saved(yard, record)


async def archive_sandbox(yard, request, body):
    record = _found(yard, request)
    if record["dto"]["autoDeleteInterval"] == 0:
        raise bad_request("Ephemeral sandboxes cannot be archived")
    if record["dto"]["state"] != "archived":
        await yard.sandboxes.begin(record, "archiving", "archived", allowed={"stopped"})
    return _saved(yard, record)


async def recover_sandbox(yard, request, body):
    record = _found(yard, request)
    if not record["dto"].get("recoverable"):
        raise bad_request("Sandbox is not recoverable")
    if request.query.get("skipStart", "false").lower() == "true":
        await yard.sandboxes.begin(record, "stopping", "stopped", allowed={"error"})
    else:
        await yard.sandboxes.begin(record, "starting", "started", allowed={"error"})
    return _saved(yard, record)


async def resize_sandbox(yard, request, body):
    record = _found(yard, request)
    dto = record["dto"]
    less = any(0 < (getattr(body, name) or 0) < dto[name] for name in ("cpu", "memory"))
    if dto["state"] == "started" and (body.disk or less):
        raise bad_request("A running sandbox can only get more CPU and memory; stop it first")
    if body.disk and body.disk < dto["disk"]:
        raise bad_request("Disk can only be increased")
    state = dto["state"]
    await yard.sandboxes.begin(record, "resizing", state, allowed={"started", "stopped"})
    dto.update({name: getattr(body, name) for name in _DEFAULTS if getattr(body, name)})
    return _saved(yard, record)


async def replace_labels(yard, request, body):
    record = _found(yard, request)
    record["dto"]["labels"] = body.labels
    yard.store.save()
    return {"labels": body.labels}


async def update_public_status(yard, request, body):
    record = _found(yard, request)
    said = request.match_info["isPublic"].lower()
    if said not in ("true", "false"):
        raise bad_request("isPublic must be true or false")
    record["dto"]["public"] = said == "true"
    return _saved(yard, record)


def _interval(field, least=0):
    async def set_interval(yard, request, body):
        record, minutes = _found(yard, request), _whole(request, "interval")
        if minutes < least:
            raise bad_request(f"interval must be at least {least}")
        if field == "autoPauseInterval" and record["dto"]["sandboxClass"] != "linux-vm":
            raise bad_request("Sandboxes of this class cannot be paused")
        record["dto"][field] = minutes if field != "autoArchiveInterval" else minutes or MAX_ARCHIVE
        return _saved(yard, record)

    return set_interval


set_autostop_interval = _interval("autoStopInterval")
set_auto_pause_interval = _interval("autoPauseInterval")
set_auto_archive_interval = _interval("autoArchiveInterval")
set_auto_delete_interval = _interval("autoDeleteInterval", least=-1)


async def set_ttl(yard, request, body):
    record = _found(yard, request)
    yard.sandboxes.live_for(record, _whole(request, "ttlMinutes"))
    return _saved(yard, record)


async def update_last_activity(yard, request, body):
    record = _found(yard, request)
    yard.sandboxes.touch(record)
    yard.store.save()


async def update_network_settings(yard, request, body):
    record = _found(yard, request)
    dto = record["dto"]
    if body.network_block_all is not None:
        dto["networkBlockAll"] = body.network_block_all
    if body.network_allow_list is not None:
        dto["networkAllowList"] = body.network_allow_list
    if body.domain_allow_list is not None:
        dto["domainAllowList"] = body.domain_allow_list
    if not record["native"]:
        raise conflict("Sandbox is being created")
    await yard.backing.call("PUT", f"/sandboxes/{record['native']}/network", json=network_of(dto))
    return _saved(yard, record)


async def create_sandbox_snapshot(yard, request, body):
    record = _found(yard, request)
    state, is_machine = record["dto"]["state"], record["dto"]["sandboxClass"] == "linux-vm"
    if body.include_memory and not is_machine:
        raise bad_request("Memory is only kept for sandboxes of class linux-vm")
    if is_machine and state != ("started" if body.include_memory else "stopped"):
        raise bad_request("A VM sandbox must be started for a snapshot with its memory, and stopped for one without")
    if state not in ("started", "stopped"):
        raise conflict(f"Sandbox is {state}")
    native = yard.snapshots.from_sandbox(body.name, record["dto"])
    record["snapshot_asked"] = (body.name, native)
    await yard.sandboxes.begin(record, "snapshotting", state, allowed={"started", "stopped"})
    return _saved(yard, record)


async def fork_sandbox(yard, request, body):
    record = _found(yard, request)
    if record["dto"]["sandboxClass"] != "linux-vm":
        raise bad_request("Sandboxes of this class cannot be forked")
    if record["dto"]["state"] not in ("started", "paused"):
        raise conflict(f"Sandbox is {record['dto']['state']}")
    dto = {**record["dto"], "id": None, "name": body.name}
    return (await yard.sandboxes.create(dto, record["ask"], fork_of=record["native"]))["dto"]


async def get_toolbox_proxy_url(yard, request, body):
    _found(yard, request)
    return {"url": yard.toolbox_url}


async def get_sandbox_signing_key(yard, request, body):
    return _found(yard, request)["signing_key"]


async def rotate_signing_key(yard, request, body):
    record = _found(yard, request)
    record["signing_key"] = secrets.token_hex(32)
    yard.store.save()
    return record["signing_key"]


async def config_controller_get_config(yard, request, body):
    return {
        "version": "counterpart",
        "oidc": {"issuer": "https://example.invalid", "clientId": "none", "audience": "none", "provider": "none"},
        "linkedAccountsEnabled": False,
        "announcements": {},
        "proxyTemplateUrl": "{{PORT}}-{{sandboxId}}",
        "proxyToolboxUrl": yard.toolbox_url,
        "defaultSnapshot": yard.snapshots.default,
        "dashboardUrl": "https://example.invalid/dashboard",
        "maxAutoArchiveInterval": MAX_ARCHIVE,
        "maintananceMode": False,
        "environment": "test",
    }
