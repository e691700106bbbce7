"""The fixtures: one open server for most tests, one that always asks for credentials, and sandboxes of both."""

import secrets

import pytest

from outside import Outside
from server import Server

pytest_plugins = ["provider_option"]

# Known here, so that tests can sign tokens that were never given out.
JWT_SECRET = "contract-tests-sign-with-this-secret-0123456789"


@pytest.fixture(scope="session")
def outside():
    """A web server of this host, which the servers are allowed to fetch from."""
    with Outside() as site:
        yield site


@pytest.fixture(scope="session")
def server(outside):
    """A server as `./run` starts it, without the quota; nothing is asked of callers on loopback."""
    with Server(LIMITS_SANDBOXES_PER_USER=0, SERVER_URL_HOSTS=outside.authority) as server:
        yield server


@pytest.fixture(scope="session")
def guarded():
    """A server that asks everybody for credentials."""
    with Server("--auth", "required", AUTH_JWT_SECRET=JWT_SECRET) as server:
        yield server


@pytest.fixture(scope="session")
def api(server):
    """Somebody on this host, without credentials."""
    api = server.api()
    yield api
    api.close()


@pytest.fixture(scope="session")
def admin(guarded):
    """The admin of the guarded server."""
    api = guarded.admin()
    yield api
    api.close()


@pytest.fixture
def make(api):
    """Makes sandboxes that are gone after the test."""
    made = []

    def make(**body):
        made.append(api.create(**body))
        return made[-1]

    yield make
    for sandbox in made:
        api.remove(sandbox)


@pytest.fixture
def sandbox(make):
    """One sandbox, gone after the test."""
    return make()


@pytest.fixture(scope="module")
def shared(api):
    """One sandbox for a whole file of tests that do not get in each other's way."""
    sandbox = api.create()
    yield sandbox
    api.remove(sandbox)


@pytest.fixture
def new_user(guarded, admin):
    """Makes users of the guarded server with a key each; they and their sandboxes are gone after the test."""
    made = []

    def new_user(**more):
        name = f"user-{secrets.token_hex(4)}"
        body = {"name": name, "password": f"Right-{name}-1!", "role": "user", **more}
        admin.ok("POST", "/users", body)
        key = admin.ok("POST", "/keys", {"name": "test", "user": name})["key"]
        made.append((name, guarded.api(key)))
        return User(name, body["password"], key, made[-1][1])

    yield new_user
    for name, api in made:
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
