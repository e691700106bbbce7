"""Recent resource usage of a sandbox, as a series of points."""

import datetime

from errors import bad_request, stamp


async def get_sandbox_metrics(cloud, request, body):
    record = cloud.sandboxes.find(request.match_info["sandboxId"])
    try:
        begin, end = (datetime.datetime.fromisoformat(request.query[name]) for name in ("from", "to"))
    except (KeyError, ValueError):
        raise bad_request("from and to must be times") from None
    names = request.query.getall("metricNames", [])
    history = await cloud.backing.get(f"/sandboxes/{record['native']}/metrics/history")
    dto, series = record["dto"], {}
    for point in history["points"]:
        at = datetime.datetime.fromtimestamp(point["at_ms"] / 1000, datetime.UTC)
        if begin <= at <= end:
            for name, value in _values(dto, point).items():
                series.setdefault(name, []).append({"timestamp": stamp(at), "value": value})
    expected = {name: points for name, points in series.items() if not names or name in names}
    return {"series": [{"metricName": name, "dataPoints": points} for name, points in expected.items()]}


def _values(dto, point):
    return {
        "daytona.sandbox.cpu.utilization": float(point["cpu_percent"] or 0),
        "daytona.sandbox.cpu.limit": dto["cpu"],
        "daytona.sandbox.memory.usage": point["memory_bytes"] or 0,
        "daytona.sandbox.memory.limit": dto["memory"] << 30,
        "daytona.sandbox.memory.cache": point["cache_bytes"] or 0,
        "daytona.sandbox.filesystem.usage": point["disk_bytes"] or 0,
        "daytona.sandbox.filesystem.total": dto["disk"] << 30,
    }
