"""API keys: what their scopes allow, how they end, how they are sent."""

from waiting import wait_for

ME = "/api/v1/auth/me"


def status(guarded, key):
    """What the server says to a key."""
    api = guarded.api(key)
    try:
        return api.get(ME).status_code
    finally:
        api.close()


def test_keys_do_what_their_scopes_say(guarded, user):
    login = user.log_in(guarded)
    keys = {
        scope: login.ok("POST", "/keys", {"name": scope, "scopes": scopes})["key"]
        for scope, scopes in {"read": ["read"], "use": ["read", "use"], "manage": ["read", "use", "manage"]}.items()
    }
    sandbox = user.api.create()
    may = {
        "read": {"look": 200, "run": 403, "make": 403},
        "use": {"look": 200, "run": 200, "make": 403},
        "manage": {"look": 200, "run": 200, "make": 200},
    }
    for name, key in keys.items():
        api = guarded.api(key)
        seen = {
            "look": api.get(f"/sandboxes/{sandbox}/status").status_code,
            "run": api.post("/sandboxes/run-command", {"sandbox_id": sandbox, "command": "true"}).status_code,
            "make": api.post("/sandboxes/create", {}).status_code,
        }
        assert seen == may[name], name
        api.close()


def test_a_key_gives_no_more_than_its_maker_has(guarded, user):
    login = user.log_in(guarded)
    assert login.post("/keys", {"name": "admin", "scopes": ["admin"]}).status_code == 403
    assert login.post("/keys", {"name": "theirs", "user": "admin"}).status_code in (403, 404)
    login.close()


def test_a_key_makes_no_keys_that_could_outlive_it(guarded, user):
    login = user.log_in(guarded)
    short = guarded.api(login.ok("POST", "/keys", {"name": "short", "expires_in": 3600})["key"])
    assert short.post("/keys", {"name": "eternal"}).status_code == 403
    assert user.api.post("/keys", {"name": "another"}).status_code == 403
    short.close()
    login.close()


def test_keys_are_shown_once_expire_and_are_revoked(guarded, user):
    login = user.log_in(guarded)
    created = login.ok("POST", "/keys", {"name": "short", "expires_in": 1})
    assert created["key"].startswith("e2b_") and len(created["key"]) == 44
    entries = user.api.ok("GET", "/keys")
    assert created["key"] not in str(entries) and created["id"] in str(entries)
    lasting = login.ok("POST", "/keys", {"name": "lasting"})
    assert status(guarded, lasting["key"]) == 200
    user.api.ok("DELETE", f"/keys/{lasting['id']}")
    assert status(guarded, lasting["key"]) == 401
    wait_for(lambda: status(guarded, created["key"]) == 401, "it is over")


def test_keys_come_as_bearer_or_in_a_header(guarded, user):
    api = guarded.api(headers={"X-API-Key": user.key})
    assert api.ok("GET", ME).get("data", api.ok("GET", ME))["name"] == user.name
    api.close()
