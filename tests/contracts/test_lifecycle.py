"""The life of a sandbox: its times, pauses, retries and end."""

import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from api import describe_reply
from pauses import NOW, moment, pauses
from waiting import wait_for


def paused(api, sandbox):
    return lambda: api.status(sandbox) == "paused"


def test_info_answers_with_all_there_is_to_know(api, sandbox):
    info = api.info(sandbox)
    assert (info["sandbox_id"], info["status"], info["user_id"]) == (sandbox, "running", "tester")
    assert set(info) >= {
        "provider_sandbox_id", "provider", "template_id", "limits", "ports", "created_at", "started_at", "stopped_at",
        "last_activity_at", "expires_at",
    }  # fmt: skip


def test_a_scheduled_time_out_survives_the_next_call(api, sandbox):
    response = api.ok("POST", "/sandboxes/schedule-timeout", {"sandbox_id": sandbox, "timeout_seconds": 500})
    assert response["expires_at"] and response["message"]
    api.run(sandbox, "true")
    api.write(sandbox, "/tmp/x", "x")
    api.ok("POST", "/sandboxes/connect", {"sandbox_id": sandbox})
    info = api.info(sandbox)
    assert info["timeout"] == 500
    remaining = moment(info["expires_at"]) - moment(info["last_activity_at"])
    assert 499 <= remaining <= 501


@pytest.mark.parametrize("seconds", [0, -1, 86401, 1.5, "soon", None])
def test_a_time_out_of_range_is_422(api, shared, seconds):
    reply = api.post("/sandboxes/schedule-timeout", {"sandbox_id": shared, "timeout_seconds": seconds})
    assert reply.status_code == 422, describe_reply(reply)


def test_an_idle_sandbox_is_paused_and_the_next_call_wakes_it(api, make):
    sandbox = make(timeout=1)
    api.run(sandbox, "while :; do date +%s%N > /tmp/ticks; sleep 0.1; done", background=True)
    wait_for(paused(api, sandbox), "it is paused")
    before = len(api.events(sandbox, "woken"))
    assert api.run(sandbox, "echo awake")["output"] == "awake\n"
    assert len(api.events(sandbox, "woken")) == before + 1
    wait_for(paused(api, sandbox), "its own time began anew")


def test_a_long_command_is_not_paused_in_the_middle(api, make):
    sandbox = make(timeout=2)
    ran = api.run(sandbox, f"{NOW}; for i in 1 2 3 4 5; do sleep 1; echo $i; done; {NOW}")
    begin, *counted, end = ran["output"].split()
    assert counted == ["1", "2", "3", "4", "5"]
    assert pauses(api, sandbox, begin, end) == []
    wait_for(paused(api, sandbox), "afterwards it is idle")


def test_an_action_of_delete_deletes(api, make):
    sandbox = make()
    api.ok("POST", "/sandboxes/schedule-timeout", {"sandbox_id": sandbox, "timeout": 1, "action": "delete"})
    wait_for(lambda: api.events(sandbox, "deleted"), "it is deleted")
    assert api.status(sandbox) == "deleted"
    assert api.post("/sandboxes/connect", {"sandbox_id": sandbox}).status_code == 404


def test_a_newer_schedule_wins_over_an_older_one(api, make):
    for seconds in (2, 20, 60):
        sandbox = make(timeout=seconds)
        api.ok("POST", "/sandboxes/schedule-timeout", {"sandbox_id": sandbox, "timeout": 3600})
        # On a busy machine the older one may have been over before there was a newer one.
        if api.status(sandbox) == "running":
            break
    other = make(timeout=seconds + 1)
    wait_for(paused(api, other), "the time of the older schedule is over", seconds + 90)
    assert api.status(sandbox) == "running"


def test_pausing_and_resuming_may_be_repeated(api, sandbox):
    for _ in range(2):
        assert api.ok("POST", f"/sandboxes/{sandbox}/pause?reason=lunch")["status"] == "paused"
    for _ in range(2):
        assert api.ok("POST", f"/sandboxes/{sandbox}/resume")["status"] == "running"
    kinds = [event["kind"] for event in api.events(sandbox)]
    assert (kinds.count("paused"), kinds.count("woken")) == (1, 1)


def test_processes_and_files_survive_a_pause(api, sandbox):
    pid = api.run(sandbox, "while :; do echo x >> /tmp/ticks; sleep 0.05; done", background=True)["process_id"]
    wait_for(lambda: api.run(sandbox, "test -s /tmp/ticks")["exit_code"] == 0, "it ticks")
    api.pause(sandbox)
    assert api.run(sandbox, f"kill -0 {pid} && echo alive")["output"] == "alive\n"


def test_deleting_twice_succeeds(api, make):
    sandbox = make()
    assert api.ok("DELETE", f"/sandboxes/{sandbox}")["success"] is True
    assert api.delete(f"/sandboxes/{sandbox}").status_code in (200, 404)


def test_a_retried_create_with_the_same_key_makes_one_sandbox(api, make):
    headers = {"Idempotency-Key": f"retry-{os.getpid()}-{time.time_ns()}"}
    body = {"user_id": "retrier"}
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: api.post("/sandboxes/create", body, headers=headers), range(8)))
    ids = {reply.json()["sandbox_id"] for reply in replies if reply.status_code == 200}
    assert len(ids) == 1, [describe_reply(reply) for reply in replies]
    assert {reply.status_code for reply in replies} <= {200, 409}
    assert api.post("/sandboxes/create", body, headers=headers).json()["sandbox_id"] in ids
    assert [one["sandbox_id"] for one in api.all(owner="retrier")] == list(ids)
    api.remove(ids.pop())
