"""Whose sandboxes are whose, in every dialect; quotas, and who did what."""

from api import describe_reply
from waiting import wait_for

ENVELOPED = "/agent/sandboxes/sandboxes"


def test_a_user_sees_only_its_own_sandboxes_in_every_dialect(new_user):
    owner, other = new_user(), new_user()
    sandbox = owner.api.create(user_id=other.name)
    assert owner.api.info(sandbox)["user_id"] == owner.name, "whatever the body says"
    assert [one["sandbox_id"] for one in owner.api.all()] == [sandbox]
    api = other.api
    assert api.all() == [] and api.all(owner=owner.name) == []
    assert api.ok("GET", "/sandboxes/status")["sandboxes"] == [] and api.ok("GET", "/api/sandboxes/") == []
    replies = [
        api.get(f"/sandboxes/{sandbox}/info"),
        api.post("/sandboxes/run-command", {"sandbox_id": sandbox, "command": "true"}),
        api.post("/sandboxes/connect", {"sandbox_id": sandbox}),
        api.get(f"/sandboxes/{sandbox}/events"),
        api.get(f"/sandboxes/{sandbox}/logs"),
        api.delete(f"/sandboxes/{sandbox}"),
        api.get(f"{ENVELOPED}/{sandbox}/info"),
        api.post(f"{ENVELOPED}/read-file", {"sandbox_id": sandbox, "file_path": "/etc/hostname"}),
        api.delete(f"{ENVELOPED}/{sandbox}"),
        api.get(f"/api/sandboxes/{sandbox}"),
        api.post(f"/api/sandboxes/{sandbox}/execute", {"command": ["true"]}),
        api.delete(f"/api/sandboxes/{sandbox}"),
    ]
    assert [reply.status_code for reply in replies] == [404] * len(replies), [describe_reply(reply) for reply in replies]
    unknown = api.get("/sandboxes/nosuchsandbox0000000/info").json()
    displayed = replies[0].json()
    assert displayed["detail"].replace(sandbox, "X") == unknown["detail"].replace("nosuchsandbox0000000", "X"), (
        "no hint that it exists"
    )
    assert owner.api.status(sandbox) == "running"


def test_an_admin_acts_for_a_user(admin, user):
    sandbox = admin.create(user_id=user.name)
    assert user.api.status(sandbox) == "running"
    assert admin.run(sandbox, "echo admin")["output"] == "admin\n"
    assert [one["sandbox_id"] for one in admin.all(owner=user.name)] == [sandbox]


def test_users_manage_nothing_of_others(user, admin):
    for method, path, body in (
        ("GET", "/users", None),
        ("POST", "/users", {"name": "x", "password": "Long-enough-1!"}),
        ("PATCH", f"/users/{user.name}", {"role": "admin"}),
        ("GET", "/audit", None),
        ("GET", "/nodes", None),
        ("GET", "/timers/dead", None),
        ("GET", "/instances/unknown", None),
        ("DELETE", "/instances/unknown/x", None),
    ):
        assert user.api.request(method, path, json=body).status_code == 403, path


def test_a_quota_is_429_with_retry_after_and_a_deleted_sandbox_gives_its_place_back(new_user):
    user = new_user(max_sandboxes=2)
    first, _ = user.api.create(), user.api.create()
    full = user.api.post("/sandboxes/create", {})
    assert full.status_code == 429, describe_reply(full)
    assert int(full.headers["retry-after"]) > 0 and full.json()["code"]
    user.api.remove(first)
    assert user.api.create()


def test_who_did_what_is_written_down(admin, user):
    sandbox = user.api.create()
    user.api.run(sandbox, "true")
    user.api.remove(sandbox)
    expected = {("create sandbox", sandbox, 200), ("run command", sandbox, 200), ("delete sandbox", sandbox, 200)}

    def actions():
        entries = admin.ok("GET", "/audit", params={"actor": user.name})["entries"]
        return {(entry["action"], entry["target"], entry["status"]) for entry in entries}

    wait_for(lambda: expected <= actions(), lambda: f"all are written down: {actions()}")
