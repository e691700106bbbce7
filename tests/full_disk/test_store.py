"""Other programs fill the disk of the data directory while a server works; then there is room again."""

import threading

import pytest

from api import stopwatch, describe_reply
from server import Server
from small_disk import SmallDisk
from waiting import wait_for

# What a server may say on a full disk: `no_space`, `no_capacity`, `unavailable`, and what became of a sandbox meanwhile.
REFUSALS = {404, 408, 409, 502, 503, 507}
VAGUE = ("the database failed", "failed to use the store", "transaction depth")


@pytest.fixture(params=["ext4", "tmpfs"])
def disk(request):
    # The engine makes nothing with less than 1 GiB free.
    with SmallDisk(2560, request.param) as disk:
        yield disk
        disk.free()
        disk.data.remove()


@pytest.fixture(params=["ext4", "tmpfs"])
def tiny_disk(request):
    with SmallDisk(64, request.param) as disk:
        yield disk


class Worker(threading.Thread):
    """Calls one verb after the other until told to stop, and keeps every answer."""

    def __init__(self, server, number):
        super().__init__(daemon=True)
        self.api = server.api()
        self.user = f"worker-{number}"
        self.over = threading.Event()
        self.answers, self.failure = [], None

    def run(self):
        try:
            while not self.over.is_set():
                self.round()
        except BaseException as error:  # noqa: BLE001 - told by the test's own thread
            self.failure = error
        finally:
            self.api.close()

    def round(self):
        created = self.ask("POST", "/sandboxes/create", json={"user_id": self.user})
        if created.status_code != 200:
            return
        sandbox = created.json()["sandbox_id"]
        body = {"sandbox_id": sandbox}
        self.ask("POST", "/sandboxes/run-command", json={**body, "command": "echo hello"})
        self.ask("POST", "/sandboxes/write-file", json={**body, "path": "/tmp/x", "content": "x"})
        self.ask("POST", f"/sandboxes/{sandbox}/pause")
        self.ask("DELETE", f"/sandboxes/{sandbox}")

    def ask(self, method, path, **options):
        reply = self.api.request(method, path, **options)
        self.answers.append(reply)
        return reply


def problems(api):
    return api.get("/health").json().get("problems", [])


def check(answers):
    """Each answer is a success, or says clearly what is wrong."""
    for reply in answers:
        assert reply.status_code in {200, *REFUSALS}, describe_reply(reply)
        assert not any(text in reply.text for text in VAGUE), describe_reply(reply)


def audit(api, path="/audit"):
    """Identities of all requests in the audit."""
    entries, before = [], None
    while True:
        page = api.ok("GET", path, params={"limit": 500, **({"before": before} if before else {})})["entries"]
        entries += page
        if len(page) < 500:
            return entries
        before = page[-1]["seq"]


def test_a_server_goes_on_after_a_full_disk(disk):
    with Server(data=disk.data, LIMITS_SANDBOXES_PER_USER=0) as server:
        api = server.api()
        stored = api.create(user_id="owner")
        api.run(stored, "echo precious > ~/kept && sync")
        workers = [Worker(server, number) for number in range(3)]
        for worker in workers:
            worker.start()
        wait_for(lambda: all(len(worker.answers) > 2 for worker in workers), "all are at work")

        disk.fill()
        full = wait_for(lambda: problems(api), "health says what is wrong")
        assert any("data disk full" in text and str(disk.data.path) in text for text in full), full
        before = [len(worker.answers) for worker in workers]
        wait_for(
            lambda: all(len(worker.answers) > count + 5 or worker.failure for worker, count in zip(workers, before)),
            "every worker was answered on the full disk",
        )

        disk.free()
        elapsed = stopwatch()
        created = wait_for(lambda: first_create(api), lambda: f"a create after there is room: {server.tail()}")
        print(f"first create {elapsed():.2f} s after there was room")
        for worker in workers:
            worker.over.set()
        for worker in workers:
            worker.join(120)
            assert not worker.is_alive() and worker.failure is None, worker.failure
        wait_for(lambda: api.get("/health").json()["status"] == "healthy", lambda: f"it is healthy again: {problems(api)}")
        answers = [reply for worker in workers for reply in worker.answers]
        check(answers)
        api.remove(created)

        # The sandbox that was acknowledged before answers, with what was synced.
        wait_for(lambda: content(api, stored) == "precious\n", lambda: f"it has its file: {content(api, stored)}")

        # Every acknowledged change is in the audit.
        acknowledged = {reply.headers["x-request-id"] for reply in answers if reply.status_code == 200}
        missing = wait_for_audit(server, acknowledged)
        assert not missing, f"{len(missing)} of {len(acknowledged)} are not in the audit"
        api.close()


def test_a_full_database_names_the_cause_and_heals(tiny_disk):
    disk = tiny_disk
    # Sandboxes that need no disk: only the database does.
    with Server(data=disk.data, variables={"SANDBOX_PROVIDER": "fake"}, LIMITS_SANDBOXES_PER_USER=0) as server:
        api = server.api()
        stored = api.create(user_id="owner")
        disk.fill()

        # Large rows use up the blocks that the database has of its own.
        large = {f"key-{number}": "x" * 250 for number in range(60)}
        refused = wait_for(lambda: next(filter(None, (refusal(api, large) for _ in range(100))), None), "a create is refused")
        assert refused.status_code == 507, describe_reply(refused)
        assert refused.json()["code"] == "no_space", describe_reply(refused)
        assert "the data disk is full: 0 MB free" in refused.json()["detail"], describe_reply(refused)
        assert "retry-after" in refused.headers
        health = wait_for(lambda: unhealthy(api), lambda: f"health says so: {api.get('/health').text}")
        assert f"data disk full: 0 MB free in {disk.data.path}" in health["problems"], health
        assert any("the database does not take writes: the data disk is full" in text for text in health["problems"])
        displayed = disk.data.ask("--url", server.url, "health")
        assert displayed.returncode == 1 and "data disk full" in displayed.stdout, displayed

        # What needs no write goes on, and is in the audit in the end.
        acknowledged = set()
        for _ in range(20):
            reply = api.post("/sandboxes/run-command", {"sandbox_id": stored, "command": "true"})
            assert reply.status_code == 200, describe_reply(reply)
            acknowledged.add(reply.headers["x-request-id"])

        disk.free()
        elapsed = stopwatch()
        created = wait_for(lambda: first_create(api), lambda: f"a create after there is room: {server.tail()}")
        print(f"first create {elapsed():.2f} s after there was room")
        api.remove(created)
        wait_for(lambda: api.get("/health").json()["status"] == "healthy", lambda: f"it is healthy again: {problems(api)}")
        missing = wait_for_audit(server, acknowledged)
        assert not missing, f"{len(missing)} of {len(acknowledged)} are not in the audit"
        api.close()


def refusal(api, metadata):
    reply = api.post("/sandboxes/create", {"user_id": "filler", "metadata": metadata})
    return None if reply.status_code == 200 else reply


def unhealthy(api):
    """The answer of a server whose database takes no writes. Small rows use up what a large one left."""
    for _ in range(10):
        refusal(api, {})
    reply = api.get("/health")
    return reply.json() if reply.status_code == 503 else None


def first_create(api):
    reply = api.post("/sandboxes/create", {"user_id": "next"})
    check([reply])
    return reply.json()["sandbox_id"] if reply.status_code == 200 else None


def content(api, sandbox):
    reply = api.post("/sandboxes/read-file", {"sandbox_id": sandbox, "path": "/home/user/kept"})
    return reply.json()["content"] if reply.status_code == 200 else reply.text


def wait_for_audit(server, requests):
    missing = set(requests)
    admin = server.admin()

    def is_whole():
        missing.difference_update(entry["request_id"] for entry in audit(admin))
        return not missing

    try:
        wait_for(is_whole, "the audit is whole", 30)
    except AssertionError:
        return missing
    finally:
        admin.close()
    return missing
