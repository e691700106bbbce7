"""States on the way, in a counterpart where every change takes for ever."""

import pytest
from conftest import config
from daytona import Daytona, DaytonaBadRequestError, DaytonaConflictError, DaytonaTimeoutError, SandboxState
from daytona_api_client import CreateSandbox, SandboxApi
from running import Counterpart


@pytest.fixture
def daytona():
    with Counterpart("--moment", "86400") as counterpart:
        yield Daytona(config(counterpart))


def test_changes_are_seen_and_are_one_at_a_time(daytona):
    created = SandboxApi(daytona._api_client).create_sandbox(CreateSandbox())
    assert created.state == SandboxState.CREATING
    sandbox = daytona.get(created.id)
    for change in (sandbox.stop, sandbox.start, sandbox.archive):
        with pytest.raises(DaytonaConflictError):
            change()
    with pytest.raises(DaytonaBadRequestError):
        sandbox.process.exec("true")
    with pytest.raises(DaytonaTimeoutError):
        sandbox.wait_for_sandbox_start(timeout=1)
    daytona.delete(sandbox)
    assert daytona.get(created.id).state == SandboxState.DESTROYING
    # Asked again, it goes on being deleted.
    daytona.delete(sandbox)
    assert [entries.state for entries in daytona.list()] == [SandboxState.DESTROYING]
