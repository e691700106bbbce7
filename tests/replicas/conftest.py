"""Three servers on one PostgreSQL and one Redis: two share a data directory, the third is another host's."""

from contextlib import ExitStack

import pytest

from data_dir import DataDir
from engines import Postgres, Redis
from server import Server, delete_all


@pytest.fixture(scope="session")
def postgres():
    with Postgres() as postgres:
        yield postgres


@pytest.fixture(scope="session")
def redis():
    with Redis() as redis:
        yield redis


class Cluster:
    """`a` and `b` reach the same engine; `c` has its own and is asked through them."""

    def __init__(self, postgres, redis):
        self.postgres, self.redis = postgres, redis
        self.shared = DataDir()
        self.a, self.b = self._server(self.shared), self._server(self.shared)
        self.c = self._server(None)

    def _server(self, data):
        flags = ["--database-url", self.postgres.url, "--redis-url", self.redis.url, "--ready", "0"]
        server = Server(*flags, data=data, LIMITS_SANDBOXES_PER_USER=0, LIMITS_SANDBOXES=0)
        server.settings["SANDYARD_NODE_URL"] = server.url
        return server

    def __enter__(self):
        # What is pushed last goes first, and each goes whatever became of the others.
        with ExitStack() as stack:
            stack.callback(self.shared.remove)
            for server in (self.a, self.b, self.c):
                stack.enter_context(server)
            stack.callback(self._delete_all)
            self._stack = stack.pop_all()
        return self

    def _delete_all(self):
        api = self.a.api()
        delete_all(api, at_once=16)
        api.close()

    def __exit__(self, *error):
        self._stack.__exit__(*error)


@pytest.fixture(scope="session")
def cluster(postgres, redis):
    with Cluster(postgres, redis) as cluster:
        yield cluster


@pytest.fixture
def apis(cluster):
    """A caller of each of the three servers."""
    apis = [server.api() for server in (cluster.a, cluster.b, cluster.c)]
    yield apis
    for api in apis:
        api.close()
