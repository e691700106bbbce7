"""Failures as the official SDK names them."""

import functools

import httpx
import pytest
from conftest import config
from daytona import (
    AsyncDaytona,
    CreateSandboxFromSnapshotParams,
    Daytona,
    DaytonaAuthenticationError,
    DaytonaError,
    DaytonaNotFoundError,
    DaytonaRateLimitError,
    DaytonaServiceUnavailableError,
)
from running import TIMEOUT

get = functools.partial(httpx.get, timeout=TIMEOUT)


@pytest.fixture
def broken(counterpart):
    yield counterpart
    counterpart.no_faults()


def test_a_wrong_key(counterpart, sandbox):
    other_user = Daytona(config(counterpart, key="wrong"))
    with pytest.raises(DaytonaAuthenticationError):
        list(other_user.list())
    with pytest.raises(DaytonaAuthenticationError):
        other_user.create()
    toolbox = f"{counterpart.url}/toolbox/{sandbox.id}"
    assert counterpart.raw("GET", "/sandbox", headers={"Authorization": ""}).status_code == 401
    assert sandbox.toolbox_proxy_url == f"{counterpart.url}/toolbox"
    assert get(f"{toolbox}/files", params={"path": "/"}).status_code == 401


def test_what_is_not_there(daytona):
    with pytest.raises(DaytonaNotFoundError):
        daytona.get("00000000-0000-4000-8000-00000000dead")


def test_too_many_requests(broken, daytona, sandbox):
    """The delay is in a header named after the throttler, so that no layer below the SDK waits for it."""
    waits = {
        "get_sandbox": ("authenticated", lambda: daytona.get(sandbox.id)),
        "create_sandbox": ("sandbox-create", daytona.create),
        "stop_sandbox": ("sandbox-lifecycle", sandbox.stop),
    }
    for operation, (throttler, call) in waits.items():
        broken.fault(status=429, retry_after=7, match=operation)
        with pytest.raises(DaytonaRateLimitError) as refused:
            call()
        outcome = {name.lower(): value for name, value in refused.value.headers.items()}
        assert outcome[f"retry-after-{throttler}"] == outcome[f"x-ratelimit-reset-{throttler}"] == "7"
        assert "retry-after" not in outcome
    assert daytona.get(sandbox.id).state == "started"


@pytest.mark.parametrize("fault", [{"kind": "half"}, {"kind": "reset"}, {"kind": "lost"}, {"kind": "garbage"}, {"status": 500}])
def test_bad_days(broken, daytona, sandbox, fault):
    """The SDK may retry, so more than one request meets the fault."""
    broken.fault(match="get_sandbox", count=20, **fault)
    with pytest.raises(DaytonaError):
        daytona.get(sandbox.id)
    broken.no_faults()
    assert daytona.get(sandbox.id).id == sandbox.id


def test_answers_that_never_come(broken, daytona, sandbox):
    broken.fault(match="get_sandbox", count=20, kind="hang")
    with pytest.raises(DaytonaError):
        daytona.get(sandbox.id, request_timeout=1)


def test_slow_answers_are_still_answers(broken, daytona, sandbox):
    broken.fault(match="get_sandbox", kind="slow", pause=0.0005)
    assert daytona.get(sandbox.id).id == sandbox.id


async def test_the_async_sdk_says_the_same(broken):
    async with AsyncDaytona(config(broken)) as daytona:
        with pytest.raises(DaytonaNotFoundError):
            await daytona.get("00000000-0000-4000-8000-00000000dead")
        broken.fault(status=503, match="create_sandbox", count=20)
        with pytest.raises(DaytonaServiceUnavailableError):
            await daytona.create(CreateSandboxFromSnapshotParams())


@pytest.mark.parametrize("kind", ["half", "reset", "lost", "hang"])
def test_bad_days_of_the_proxy(broken, sandbox, kind):
    link = sandbox.get_preview_link(3777)
    token = {"x-daytona-preview-token": link.token}
    broken.fault(match="preview", kind=kind)
    with pytest.raises(httpx.HTTPError):
        get(link.url, headers=token, timeout=2 if kind == "hang" else TIMEOUT)
    # On a busy machine the time may be over before the request has met the fault.
    broken.no_faults()
    assert get(link.url, headers=token).status_code == 502
    broken.fault(match="preview", status=429, retry_after=1)
    assert get(link.url, headers=token).status_code == 429
