"""The fixtures: a counterpart for the whole run, the official SDK pointed at it, and sandboxes made by that."""

import pytest
from daytona import AsyncDaytona, CreateSandboxFromSnapshotParams, Daytona, DaytonaConfig, DaytonaNotFoundError
from running import TIMEOUT, Counterpart


def pytest_collection_modifyitems(items):
    # It looks back at what all others did.
    items.sort(key=lambda item: item.path.name == "test_operations.py")


@pytest.fixture(scope="session")
def counterpart():
    with Counterpart() as counterpart:
        yield counterpart


def config(counterpart, key=None):
    return DaytonaConfig(api_key=key or counterpart.key, api_url=counterpart.api_url, target="us")


@pytest.fixture(scope="session")
def daytona(counterpart):
    return Daytona(config(counterpart))


@pytest.fixture
async def async_daytona(counterpart):
    async with AsyncDaytona(config(counterpart)) as daytona:
        yield daytona


@pytest.fixture
def make(daytona):
    """Makes sandboxes that are gone after the test."""
    created = []

    def make(**params):
        created.append(daytona.create(CreateSandboxFromSnapshotParams(**params), timeout=TIMEOUT))
        return created[-1]

    yield make
    for sandbox in created:
        try:
            daytona.delete(sandbox)
        except DaytonaNotFoundError:
            pass


@pytest.fixture(scope="session")
def sandbox(daytona):
    """One that tests share which leave it as it is."""
    sandbox = daytona.create(CreateSandboxFromSnapshotParams(auto_stop_interval=0), timeout=TIMEOUT)
    yield sandbox
    daytona.delete(sandbox, wait=True)
