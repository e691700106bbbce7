"""A server that asks everybody for credentials, its admin, and users of it; a plugin of suites that are about tenants."""

import secrets

import pytest

from server import Server

# Known here, so that tests can sign tokens that the server never issued.
JWT_SECRET = "contract-tests-sign-with-this-secret-0123456789"


@pytest.fixture(scope="session")
def guarded():
    """A server that asks everybody for credentials."""
    with Server("--auth", "required", AUTH_JWT_SECRET=JWT_SECRET) as server:
        yield server


@pytest.fixture(scope="session")
def admin(guarded):
    """The admin of the guarded server."""
    api = guarded.admin()
    yield api
    api.close()


@pytest.fixture
def new_user(guarded, admin):
    """Makes users of the guarded server with a key each; they and their sandboxes are gone after the test."""
    created = []

    def new_user(**more):
        name = f"user-{secrets.token_hex(4)}"
        body = {"name": name, "password": f"Right-{name}-1!", "role": "user", **more}
        admin.ok("POST", "/users", body)
        key = admin.ok("POST", "/keys", {"name": "test", "user": name})["key"]
        created.append((name, guarded.api(key)))
        return User(name, body["password"], key, created[-1][1])

    yield new_user
    for name, api in created:
        for sandbox in admin.all(owner=name):
            admin.remove(sandbox["sandbox_id"])
        api.close()
        admin.ok("DELETE", f"/users/{name}")


@pytest.fixture
def user(new_user):
    """One user of the guarded server."""
    return new_user()


class User:
    """A user with a password and a key. `api` uses the key."""

    def __init__(self, name, password, key, api):
        self.name, self.password, self.key, self.api = name, password, key, api

    def log_in(self, server):
        """The same user by a login: a key makes no keys."""
        credentials = {"username": self.name, "password": self.password}
        return server.api(self.api.ok("POST", "/api/v1/auth/login/swagger", credentials)["access_token"])
