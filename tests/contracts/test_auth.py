"""Logins and their tokens: locked, refreshed, ended, expired, forged."""

import time

import pytest

from api import describe_reply
from tenants import JWT_SECRET
from tokens import claims_of, sign

LOGIN = "/api/v1/auth/login/swagger"
ME = "/api/v1/auth/me"
ENVELOPED = "/agent/sandboxes/sandboxes"


def login(api, name, password):
    return api.post(LOGIN, params={"username": name, "password": password})


@pytest.fixture
def anonymous(guarded):
    api = guarded.api()
    yield api
    api.close()


@pytest.fixture
def session(guarded, anonymous, user):
    """The tokens of a login."""
    reply = login(anonymous, user.name, user.password)
    assert reply.status_code == 200, describe_reply(reply)
    return reply.json()


def identity(guarded, token):
    """What the server says to a token."""
    api = guarded.api(token)
    try:
        return api.get(ME)
    finally:
        api.close()


def test_five_wrong_passwords_lock_the_user_for_300_seconds(anonymous, new_user):
    locked, other = new_user(), new_user()
    for _ in range(5):
        assert login(anonymous, locked.name, "wrong").status_code == 401
    for password in ("wrong", locked.password):
        reply = login(anonymous, locked.name, password)
        assert reply.status_code == 429, describe_reply(reply)
        assert 200 < int(reply.headers["retry-after"]) <= 300
    assert login(anonymous, other.name, other.password).status_code == 200
    assert locked.api.get(ME).status_code == 200, "keys go on working"


def test_a_right_password_forgives_wrong_ones(anonymous, user):
    for _ in range(3):
        for _ in range(4):
            assert login(anonymous, user.name, "wrong").status_code == 401
        assert login(anonymous, user.name, user.password).status_code == 200


def test_an_unknown_name_is_answered_like_a_wrong_password(anonymous, user):
    wrong, unknown = login(anonymous, user.name, "wrong"), login(anonymous, "nobody-at-all", "wrong")
    assert (wrong.status_code, wrong.json()["detail"]) == (unknown.status_code, unknown.json()["detail"])


def test_a_token_lives_a_day(session):
    claims = claims_of(session["access_token"])
    assert claims["exp"] - claims["iat"] == 24 * 3600
    assert session["token_type"] == "bearer"


def test_refresh_gives_new_tokens_and_works_once(guarded, anonymous, session):
    refreshed = anonymous.ok("POST", "/api/v1/auth/refresh", {"refresh_token": session["refresh_token"]})
    refreshed = refreshed.get("data", refreshed)
    assert identity(guarded, refreshed["access_token"]).status_code == 200
    repeated = anonymous.post("/api/v1/auth/refresh", {"refresh_token": session["refresh_token"]})
    assert repeated.status_code == 401, describe_reply(repeated)
    # Somebody has a copy, so the whole login is over.
    assert identity(guarded, refreshed["access_token"]).status_code == 401


def test_logout_ends_the_token_and_its_refresh(guarded, anonymous, session):
    api = guarded.api(session["access_token"])
    assert api.post("/api/v1/auth/logout").status_code == 200
    assert api.get(ME).status_code == 401
    assert anonymous.post("/api/v1/auth/refresh", {"refresh_token": session["refresh_token"]}).status_code == 401
    api.close()


def test_a_new_password_and_a_disabled_user_end_every_login(guarded, admin, anonymous, user, session):
    admin.ok("PATCH", f"/users/{user.name}", {"password": "Another-one-2!"})
    assert identity(guarded, session["access_token"]).status_code == 401
    assert login(anonymous, user.name, user.password).status_code == 401
    fresh = login(anonymous, user.name, "Another-one-2!").json()["access_token"]
    admin.ok("PATCH", f"/users/{user.name}", {"disabled": True})
    assert identity(guarded, fresh).status_code == 401
    assert user.api.get(ME).status_code == 401
    assert login(anonymous, user.name, "Another-one-2!").status_code == 401


def test_an_expired_token_is_refused(guarded, session):
    claims = claims_of(session["access_token"])
    # Signed here as there, so the next refusal is for its age and nothing else.
    assert identity(guarded, sign({**claims, "jti": "other"}, JWT_SECRET)).status_code == 200
    now = int(time.time())
    assert identity(guarded, sign({**claims, "iat": now - 90, "exp": now - 60}, JWT_SECRET)).status_code == 401


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
        reply = identity(guarded, one)
        assert reply.status_code == 401, (one, describe_reply(reply))
        assert reply.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize(
    "path", [ME, "/sandboxes", "/api/sandboxes/", f"{ENVELOPED}/x/status", "/api/v1/agent/sandboxes/x/status"]
)
def test_no_credentials_is_401_and_says_how(anonymous, path):
    reply = anonymous.get(path)
    assert reply.status_code == 401, describe_reply(reply)
    assert reply.headers["www-authenticate"].startswith("Bearer")
    for header in ({"Authorization": "Basic YTpi"}, {"Authorization": "Bearer"}, {"X-API-Key": ""}, {"X-API-Key": "\xff"}):
        encoded = {name: value.encode("latin-1") for name, value in header.items()}
        assert anonymous.get(path, headers=encoded).status_code == 401


def test_the_enveloped_dialect_asks_for_credentials_on_an_open_listener_too(api):
    for path in (f"{ENVELOPED}/x/status", ME, "/users", "/keys", "/audit"):
        assert api.get(path).status_code == 401


def test_secrets_are_in_no_answer_and_in_no_log(guarded, admin, user, session):
    admin.ok("GET", "/users")
    log = guarded.log.read_text()
    for secret in (user.password, user.key, session["access_token"], session["refresh_token"], JWT_SECRET):
        assert secret not in log
        assert secret not in str(admin.ok("GET", "/users")) + str(admin.ok("GET", "/keys")) + str(admin.ok("GET", "/audit"))
