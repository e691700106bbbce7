"""The toolbox: commands, sessions and what the sandbox says of itself."""

import asyncio
import shlex

from backing import HOME, NativeError
from errors import daemon, now


def started(cloud, request):
    """The sandbox of a call of the toolbox. Every call is activity."""
    record = cloud.sandboxes.started(request.match_info["toolbox_sandbox"])
    cloud.sandboxes.touch(record)
    return record


def environment(record, more=None):
    """What commands find around them: what was set at creation is the backing server's business."""
    return {**record["env"], **(more or {})}


async def _run(cloud, record, command, *, cwd=None, envs=None, timeout=None):
    try:
        return await cloud.backing.run(
            record["native"], command, cwd=cwd or HOME, env=environment(record, envs), timeout=timeout or None
        )
    except NativeError as error:
        if error.status == 408:
            raise daemon(408, "command execution timeout", "PROCESS_EXECUTION_TIMEOUT") from error
        raise daemon(400, error.detail, "BAD_REQUEST") from error


def _unset(record):
    names = record.get("unset", [])
    return f"unset {' '.join(map(shlex.quote, names))}\n" if names else ""


async def execute_command(cloud, request, body):
    record = started(cloud, request)
    command = ["bash", "-c", f"exec 2>&1\n{_unset(record)}{body.command}"]
    done = await _run(cloud, record, command, cwd=body.cwd, envs=body.envs, timeout=body.timeout)
    return {"exitCode": done["exit_code"], "result": done["stdout"]}


_LANGUAGES = {"python": ["python3", "-c"], "javascript": ["node", "-e"], "typescript": ["node", "-e"]}


async def code_run(cloud, request, body):
    record = started(cloud, request)
    if body.language not in _LANGUAGES:
        raise daemon(400, f"no such language: {body.language}", "BAD_REQUEST")
    command = [*_LANGUAGES[body.language], body.code, *(body.argv or [])]
    done = await _run(cloud, record, command, envs=body.envs, timeout=body.timeout)
    return {"exitCode": done["exit_code"], "result": done["output"]}


async def get_user_home_dir(cloud, request, body):
    started(cloud, request)
    return {"dir": HOME}


async def get_work_dir(cloud, request, body):
    started(cloud, request)
    return {"dir": HOME}


async def get_version(cloud, request, body):
    started(cloud, request)
    return {"version": "counterpart"}


async def _listening(cloud, record):
    """The ports something listens on, of /proc/net/tcp."""
    done = await _run(cloud, record, ["cat", "/proc/net/tcp", "/proc/net/tcp6"])
    rows = (line.split() for line in done["stdout"].splitlines())
    return sorted({int(row[1].rpartition(":")[2], 16) for row in rows if len(row) > 3 and row[3] == "0A"})


async def get_ports(cloud, request, body):
    return {"ports": await _listening(cloud, started(cloud, request))}


async def is_port_in_use(cloud, request, body):
    record, port = started(cloud, request), request.match_info["port"]
    if not port.isdigit():
        raise daemon(400, "port must be a number", "BAD_REQUEST")
    return {"isInUse": int(port) in await _listening(cloud, record)}


async def get_system_metrics(cloud, request, body):
    record = started(cloud, request)
    used, dto = await cloud.backing.get(f"/sandboxes/{record['native']}/metrics"), record["dto"]
    await asyncio.sleep(0.1)
    later = await cloud.backing.get(f"/sandboxes/{record['native']}/metrics")
    spent = (later["cpu_usage_us"] or 0) - (used["cpu_usage_us"] or 0)
    disk = later["disk_bytes"] or 0
    return {
        "cpuCount": dto["cpu"],
        "cpuUsedPct": max(0.0, spent / 1e5 * 100 / dto["cpu"]),
        "memTotal": dto["memory"] << 30,
        "memUsed": later["memory_bytes"] or 0,
        "memCache": later["memory_cache_bytes"] or 0,
        "diskTotal": dto["disk"] << 30,
        "diskUsed": disk,
        "diskFree": max(0, (dto["disk"] << 30) - disk),
        "timestamp": now(),
    }


async def update_env(cloud, request, body):
    record = started(cloud, request)
    record["env"].update(body.set or {})
    for name in body.unset or []:
        record["env"].pop(name, None)
    record["unset"] = sorted(({*record.get("unset", []), *(body.unset or [])}) - set(body.set or {}))
    cloud.store.save()
    return {}
