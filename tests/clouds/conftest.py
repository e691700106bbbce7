"""The fixtures: a server that plays E2B's cloud, and one whose sandboxes are there."""

import pytest

from server import Server


@pytest.fixture(scope="module")
def cloud():
    """A second server: what the first one takes for E2B."""
    with Server("--ready", "0") as cloud:
        yield cloud


@pytest.fixture(scope="module")
def server(cloud):
    """A server that makes sandboxes of its own unless told otherwise, and falls back to the cloud."""
    variables = {
        "E2B_API_KEY": cloud.admin_key,
        "E2B_API_URL": cloud.e2b_url,
        "E2B_SANDBOX_URL": cloud.e2b_url,
        "SANDYARD_PROVIDERS": "e2b",
        "SANDYARD_FALLBACK": "e2b",
    }
    with Server("--ready", "0", variables=variables, LIFECYCLE_ORPHAN_GRACE=2) as server:
        yield server


@pytest.fixture
def api(server):
    api = server.admin()
    yield api
    api.close()


@pytest.fixture
def cloud_sandboxes(cloud):
    """The cloud's own sandboxes, by id."""
    api = cloud.admin()
    yield lambda: {one["sandbox_id"]: one for one in api.all() if one["status"] not in ("deleted", "deleting")}
    api.close()
