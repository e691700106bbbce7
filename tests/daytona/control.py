"""The control plane: one function for each operation on sandboxes, called as the generated client calls it."""

import secrets

from errors import bad_request, conflict

ORGANIZATION = "00000000-0000-4000-8000-000000000001"
TARGET = "us"
MAX_ARCHIVE = 43200
_DEFAULTS = {"cpu": 1, "memory": 1, "disk": 3}


def _record_of(cloud, request):
    match = request.match_info
    return cloud.sandboxes.find(match.get("sandboxIdOrName") or match["sandboxId"])


def _integer(request, name):
    """A whole number in the path."""
    try:
        return int(request.match_info[name])
    except ValueError:
        raise bad_request(f"{name} must be a whole number") from None


def _saved(cloud, record):
    cloud.store.save()
    return record["dto"]


async def create_sandbox(cloud, request, body):
    if body.build_info and body.snapshot:
        raise bad_request("Cannot specify both a snapshot and build information")
    if not body.build_info and (body.cpu or body.memory or body.disk):
        raise bad_request("Cannot specify Sandbox resources when using a snapshot")
    if body.auto_stop_interval and body.auto_pause_interval:
        raise bad_request("At most one of autoStopInterval and autoPauseInterval may be non-zero")
    snapshot = cloud.snapshots.usable(body.snapshot) if not body.build_info else None
    kind = snapshot["sandboxClass"] if snapshot else "container"
    if body.auto_pause_interval and kind != "linux-vm":
        raise bad_request("Sandboxes of this class cannot be paused")
    lifespan = _lifespan(cloud, body.ttl_minutes)
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
        "toolboxProxyUrl": cloud.toolbox_url,
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
    record = await cloud.sandboxes.create(dto, ask)
    if lifespan:
        cloud.sandboxes.live_for(record, lifespan)
    return _saved(cloud, record)


def _when_idle(kind, body):
    """The intervals: where neither is asked for, what can be paused is, and all else is stopped."""
    stop, pause = body.auto_stop_interval, body.auto_pause_interval
    if stop is None and pause is None:
        stop, pause = (0, 60) if kind == "linux-vm" else (15, 0)
    elif stop is None:
        stop = 0 if pause else 15
    return {"autoStopInterval": stop, "autoPauseInterval": pause or 0}


def _lifespan(cloud, minutes):
    """How long a sandbox lives at most; an organization may have a bound that nobody gets around."""
    limit = cloud.lifespan
    if limit and minutes is not None and not 0 < minutes <= limit:
        raise bad_request(f"ttlMinutes must be from 1 to {limit}: the organization has a maximum sandbox lifespan")
    return minutes if minutes is not None else limit


def network_of(dto):
    """A sandbox's egress policy in the form of the backing server."""
    addresses = [word.strip() for word in (dto.get("networkAllowList") or "").split(",") if word.strip()]
    domains = [word.strip() for word in (dto.get("domainAllowList") or "").split(",") if word.strip()]
    if dto["networkBlockAll"]:
        return {"allow_internet_access": False}
    if addresses or domains:
        return {"allow_out": addresses + domains, "deny_out": ["0.0.0.0/0"]}
    return {"allow_internet_access": True}


async def get_sandbox(cloud, request, body):
    return _record_of(cloud, request)["dto"]


async def delete_sandbox(cloud, request, body):
    record = _record_of(cloud, request)
    await cloud.sandboxes.destroy(record)
    return _saved(cloud, record)


async def start_sandbox(cloud, request, body):
    record = _record_of(cloud, request)
    state = record["dto"]["state"]
    next_state = {"archived": "restoring", "paused": "resuming"}.get(state, "starting")
    if state != "started":
        await cloud.sandboxes.begin(record, next_state, "started", allowed={"stopped", "archived", "paused"})
    return _saved(cloud, record)


async def stop_sandbox(cloud, request, body):
    record = _record_of(cloud, request)
    if record["dto"]["state"] != "stopped":
        await cloud.sandboxes.stop(record)
    return _saved(cloud, record)


async def pause_sandbox(cloud, request, body):
    record = _record_of(cloud, request)
    if record["dto"]["sandboxClass"] != "linux-vm":
        raise bad_request("Sandboxes of this class cannot be paused")
    if record["dto"]["state"] != "paused":
        await cloud.sandboxes.begin(record, "pausing", "paused", allowed={"started"})
    return _saved(cloud, record)


async def archive_sandbox(cloud, request, body):
    record = _record_of(cloud, request)
    if record["dto"]["autoDeleteInterval"] == 0:
        raise bad_request("Ephemeral sandboxes cannot be archived")
    if record["dto"]["state"] != "archived":
        await cloud.sandboxes.begin(record, "archiving", "archived", allowed={"stopped"})
    return _saved(cloud, record)


async def recover_sandbox(cloud, request, body):
    record = _record_of(cloud, request)
    if not record["dto"].get("recoverable"):
        raise bad_request("Sandbox is not recoverable")
    if request.query.get("skipStart", "false").lower() == "true":
        await cloud.sandboxes.begin(record, "stopping", "stopped", allowed={"error"})
    else:
        await cloud.sandboxes.begin(record, "starting", "started", allowed={"error"})
    return _saved(cloud, record)


async def resize_sandbox(cloud, request, body):
    record = _record_of(cloud, request)
    dto = record["dto"]
    less = any(0 < (getattr(body, name) or 0) < dto[name] for name in ("cpu", "memory"))
    if dto["state"] == "started" and (body.disk or less):
        raise bad_request("A running sandbox can only get more CPU and memory; stop it first")
    if body.disk and body.disk < dto["disk"]:
        raise bad_request("Disk can only be increased")
    state = dto["state"]
    await cloud.sandboxes.begin(record, "resizing", state, allowed={"started", "stopped"})
    dto.update({name: getattr(body, name) for name in _DEFAULTS if getattr(body, name)})
    return _saved(cloud, record)


async def replace_labels(cloud, request, body):
    record = _record_of(cloud, request)
    record["dto"]["labels"] = body.labels
    cloud.store.save()
    return {"labels": body.labels}


async def update_public_status(cloud, request, body):
    record = _record_of(cloud, request)
    response = request.match_info["isPublic"].lower()
    if response not in ("true", "false"):
        raise bad_request("isPublic must be true or false")
    record["dto"]["public"] = response == "true"
    return _saved(cloud, record)


def _interval(field, least=0):
    async def set_interval(cloud, request, body):
        record, minutes = _record_of(cloud, request), _integer(request, "interval")
        if minutes < least:
            raise bad_request(f"interval must be at least {least}")
        if field == "autoPauseInterval" and record["dto"]["sandboxClass"] != "linux-vm":
            raise bad_request("Sandboxes of this class cannot be paused")
        record["dto"][field] = minutes if field != "autoArchiveInterval" else minutes or MAX_ARCHIVE
        return _saved(cloud, record)

    return set_interval


set_autostop_interval = _interval("autoStopInterval")
set_auto_pause_interval = _interval("autoPauseInterval")
set_auto_archive_interval = _interval("autoArchiveInterval")
set_auto_delete_interval = _interval("autoDeleteInterval", least=-1)


async def set_ttl(cloud, request, body):
    record = _record_of(cloud, request)
    cloud.sandboxes.live_for(record, _integer(request, "ttlMinutes"))
    return _saved(cloud, record)


async def update_last_activity(cloud, request, body):
    record = _record_of(cloud, request)
    cloud.sandboxes.touch(record)
    cloud.store.save()


async def update_network_settings(cloud, request, body):
    record = _record_of(cloud, request)
    dto = record["dto"]
    if body.network_block_all is not None:
        dto["networkBlockAll"] = body.network_block_all
    if body.network_allow_list is not None:
        dto["networkAllowList"] = body.network_allow_list
    if body.domain_allow_list is not None:
        dto["domainAllowList"] = body.domain_allow_list
    if not record["native"]:
        raise conflict("Sandbox is being created")
    await cloud.backing.call("PUT", f"/sandboxes/{record['native']}/network", json=network_of(dto))
    return _saved(cloud, record)


async def create_sandbox_snapshot(cloud, request, body):
    record = _record_of(cloud, request)
    state, is_machine = record["dto"]["state"], record["dto"]["sandboxClass"] == "linux-vm"
    if body.include_memory and not is_machine:
        raise bad_request("Memory is only kept for sandboxes of class linux-vm")
    if is_machine and state != ("started" if body.include_memory else "stopped"):
        raise bad_request("A VM sandbox must be started for a snapshot with its memory, and stopped for one without")
    if state not in ("started", "stopped"):
        raise conflict(f"Sandbox is {state}")
    native = cloud.snapshots.from_sandbox(body.name, record["dto"])
    record["snapshot_asked"] = (body.name, native)
    await cloud.sandboxes.begin(record, "snapshotting", state, allowed={"started", "stopped"})
    return _saved(cloud, record)


async def fork_sandbox(cloud, request, body):
    record = _record_of(cloud, request)
    if record["dto"]["sandboxClass"] != "linux-vm":
        raise bad_request("Sandboxes of this class cannot be forked")
    if record["dto"]["state"] not in ("started", "paused"):
        raise conflict(f"Sandbox is {record['dto']['state']}")
    dto = {**record["dto"], "id": None, "name": body.name}
    return (await cloud.sandboxes.create(dto, record["ask"], fork_of=record["native"]))["dto"]


async def get_toolbox_proxy_url(cloud, request, body):
    _record_of(cloud, request)
    return {"url": cloud.toolbox_url}


async def get_sandbox_signing_key(cloud, request, body):
    return _record_of(cloud, request)["signing_key"]


async def rotate_signing_key(cloud, request, body):
    record = _record_of(cloud, request)
    record["signing_key"] = secrets.token_hex(32)
    cloud.store.save()
    return record["signing_key"]


async def config_controller_get_config(cloud, request, body):
    return {
        "version": "counterpart",
        "oidc": {"issuer": "https://example.invalid", "clientId": "none", "audience": "none", "provider": "none"},
        "linkedAccountsEnabled": False,
        "announcements": {},
        "proxyTemplateUrl": "{{PORT}}-{{sandboxId}}",
        "proxyToolboxUrl": cloud.toolbox_url,
        "defaultSnapshot": cloud.snapshots.default,
        "dashboardUrl": "https://example.invalid/dashboard",
        "maxAutoArchiveInterval": MAX_ARCHIVE,
        "maintananceMode": False,
        "environment": "test",
    }
