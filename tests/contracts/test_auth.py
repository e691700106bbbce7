"""Logins and their tokens: locked, refreshed, ended, expired, forged."""

import time

import pytest

from api import told
from tenants import JWT_SECRET
from tokens import claims_of, sign

LOGIN = "/api/v1/auth/login/swagger"
ME = "/api/v1/auth/me"
ENVELOPED = "/agent/sandboxes/sandboxes"


def login(api, name, password):
    return api.post(LOGIN, params={"username": name, "password": password})


@pytest.fixture
def anybody(guarded):
    api = guarded.api()
    yield api
    api.close()


@pytest.fixture
def session(guarded, anybody, user):
    """The tokens of a login."""
    reply = login(anybody, user.name, user.password)
    assert reply.status_code == 200, told(reply)
    return reply.json()


def who(guarded, token):
    """What the server says to a token."""
    api = guarded.api(token)
    try:
        return api.get(ME)
    finally:
        api.close()


def test_five_wrong_passwords_lock_the_user_for_300_seconds(anybody, new_user):
    locked, other = new_user(), new_user()
    for _ in range(5):
        assert login(anybody, locked.name, "wrong").status_code == 401
    for password in ("wrong", locked.password):
        reply = login(anybody, locked.name, password)
        assert reply.status_code == 429, told(reply)
        assert 200 < int(reply.headers["retry-after"]) <= 300
    assert login(anybody, other.name, other.password).status_code == 200
    assert locked.api.get(ME).status_code == 200, "keys go on working"


def test_a_right_password_forgives_wrong_ones(anybody, user):
    for _ in range(3):
        for _ in range(4):
            assert login(anybody, user.name, "wrong").status_code == 401
        assert login(anybody, user.name, user.password).status_code == 200


def test_an_unknown_name_is_answered_like_a_wrong_password(anybody, user):
    wrong, unknown = login(anybody, user.name, "wrong"), login(anybody, "nobody-at-all", "wrong")
    assert (wrong.status_code, wrong.json()["detail"]) == (unknown.status_code, unknown.json()["detail"])


def test_a_token_lives_a_day(session):
    claims = claims_of(session["access_token"])
    assert claims["exp"] - claims["iat"] == 24 * 3600
    assert session["token_type"] == "bearer"


def test_refresh_gives_new_tokens_and_works_once(guarded, anybody, session):
    refreshed = anybody.ok("POST", "/api/v1/auth/refresh", {"refresh_token": session["refresh_token"]})
    refreshed = refreshed.get("data", refreshed)
    assert who(guarded, refreshed["access_token"]).status_code == 200
    again = anybody.post("/api/v1/auth/refresh", {"refresh_token": session["refresh_token"]})
    assert again.status_code == 401, told(again)
    # Somebody has a copy, so the whole login is over.
    assert who(guarded, refreshed["access_token"]).status_code == 401


def test_logout_ends_the_token_and_its_refresh(guarded, anybody, session):
    api = guarded.api(session["access_token"])
    assert api.post("/api/v1/auth/logout").status_code == 200
    assert api.get(ME).status_code == 401
    assert anybody.post("/api/v1/auth/refresh", {"refresh_token": session["refresh_token"]}).status_code == 401
    api.close()


def test_a_new_password_and_a_disabled_user_end_every_login(guarded, admin, anybody, user, session):
    admin.ok("PATCH", f"/users/{user.name}", {"password": "Another-one-2!"})
    assert who(guarded, session["access_token"]).status_code == 401
    assert login(anybody, user.name, user.password).status_code == 401
    fresh = login(anybody, user.name, "Another-one-2!").json()["access_token"]
    admin.ok("PATCH", f"/users/{user.name}", {"disabled": True})
    assert who(guarded, fresh).status_code == 401
    assert user.api.get(ME).status_code == 401
    assert login(anybody, user.name, "Another-one-2!").status_code == 401


def test_an_expired_token_is_refused(guarded, session):
    claims = claims_of(session["access_token"])
    # Signed here as there, so the next refusal is for its age and nothing else.
    assert who(guarded, sign({**claims, "jti": "other"}, JWT_SECRET)).status_code == 200
    now = int(time.time())
    assert who(guarded, sign({**claims, "iat": now - 90, "exp": now - 60}, JWT_SECRET)).status_code == 401


def test_a_forged_token_is_refused(guarded, session):
    token = session["access_token"]
    claims = claims_of(token)
    head, body, signature = token.split(".")
    forged = [
        sign(claims, "some-other-secret-that-is-long-enough"),
        sign({**claims, "sub": "admin", "role": "admin"}, "x" * 40),
        sign(claims, "", "none"),
        f"{head}.{body}.",
        f"{head}.{body}",
        f"{head}.{body}.{signature[:-4]}AAAA",
        "x.y.z",
        "e2b_" + "0" * 40,
    ]
    for one in forged:
        reply = who(guarded, one)
        assert reply.status_code == 401, (one, told(reply))
        assert reply.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize(
    "path", [ME, "/sandboxes", "/api/sandboxes/", f"{ENVELOPED}/x/status", "/api/v1/agent/sandboxes/x/status"]
)
def test_no_credentials_is_401_and_says_how(anybody, path):
    reply = anybody.get(path)
    assert reply.status_code == 401, told(reply)
    assert reply.headers["www-authenticate"].startswith("Bearer")
    for header in ({"Authorization": "Basic YTpi"}, {"Authorization": "Bearer"}, {"X-API-Key": ""}, {"X-API-Key": "\xff"}):
        encoded = {name: value.encode("latin-1") for name, value in header.items()}
        assert anybody.get(path, headers=encoded).status_code == 401


def test_the_enveloped_dialect_asks_for_credentials_on_an_open_listener_too(api):
    for path in (f"{ENVELOPED}/x/status", ME, "/users", "/keys", "/audit"):
        assert api.get(path).status_code == 401


def test_secrets_are_in_no_answer_and_in_no_log(guarded, admin, user, session):
    admin.ok("GET", "/users")
    log = guarded.log.read_text()
    for secret in (user.password, user.key, session["access_token"], session["refresh_token"], JWT_SECRET):
        assert secret not in log
        assert secret not in str(admin.ok("GET", "/users")) + str(admin.ok("GET", "/keys")) + str(admin.ok("GET", "/audit"))
