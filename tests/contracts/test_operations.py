"""What monitoring reads: metrics and the log of requests."""

import re
import subprocess

# Families that each server has from its first request on.
FAMILIES = """sandyard_build_info sandyard_create_seconds sandyard_database_connections sandyard_disk_free_bytes sandyard_http_requests_total
sandyard_memory_available_bytes sandyard_process_cpu_seconds_total sandyard_process_open_fds sandyard_process_resident_memory_bytes
sandyard_process_start_time_seconds sandyard_provider_up sandyard_sandboxes""".split()


def test_prometheus_finds_no_fault_with_the_metrics(server, api, shared):
    api.ok("GET", f"/sandboxes/{shared}/status")
    page = server.admin().get("/metrics").text
    checked = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, text=True)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", ""), page
    families = re.findall(r"^# TYPE (\S+) (?:counter|gauge|histogram)$", page, re.M)
    assert set(FAMILIES) <= set(families), families
    assert all(name.startswith("sandyard_") for name in families), families
    assert len(re.findall(r"^# HELP sandyard_\S+ [A-Z0-9].*\.$", page, re.M)) == len(families), page


def lines_of(server, request):
    """The lines of the log about a request, by its id."""
    return [line for line in server.log.read_text().splitlines() if f"request={request}" in line]


def test_the_log_has_one_short_line_for_each_request(server, shared):
    admin = server.admin()
    name = admin.info(shared)["sandbox_id"]
    cases = [
        ("GET", f"/sandboxes/{name}/status?token=hidden", "/sandboxes/{id}/status"),
        ("GET", "/no/such/thing?token=hidden", "/no/such/thing"),
        ("GET", f"/p/{name}/6060/health?sandyard_token=hidden", f"/p/{name}/6060/health"),
    ]
    for number, (method, path, template) in enumerate(cases):
        request = f"log-{number}-{name}"
        reply = admin.request(method, path, headers={"X-Request-ID": request})
        (line,) = lines_of(server, request)
        assert f" INFO {method} path={template} status={reply.status_code} ms=" in line, line
        assert "hidden" not in line and len(line) < 260, line
        assert (f"sandbox={name}" in line) == (name in path), line
    key = admin.http.headers["Authorization"].removeprefix("Bearer ")
    (line,) = lines_of(server, f"log-0-{name}")
    assert re.search(r" user=\S+ via=key:\S+ ", line) and key not in line, line
