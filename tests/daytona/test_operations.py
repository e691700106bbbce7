"""Looks back at the whole run: what the provider calls, the official SDK called too, and nothing surprised anybody."""

from pathlib import Path

import contract
import pytest
from report import PROVIDER, contract_operations

_SDK = ("sdk-python", "sdk-python-async")


@pytest.fixture
def report(request, counterpart):
    """Only a run of everything can be judged."""
    ran = {item.path.name for item in request.session.items}
    missing = {path.name for path in Path(__file__).parent.glob("test_*.py")} - ran
    assert not missing, f"run the whole of tests/daytona; missing: {sorted(missing)}"
    return counterpart.report()


def driven(report):
    return {name for client, calls in report["operations"].items() if client in _SDK for name in calls}


def test_all_the_provider_calls_was_called_by_the_sdk(report):
    assert contract_operations() <= set(contract.CONTROL) | set(contract.TOOLBOX)
    assert sorted(contract_operations() - driven(report)) == []


def test_all_the_counterpart_serves_was_called_by_the_sdk(report):
    served = set(contract.CONTROL) | set(contract.TOOLBOX)
    assert sorted(served - driven(report)) == []


def test_the_sdk_was_never_refused_for_its_form(report):
    assert [what for what in report["refused"] + report["unknown"] if what["client"] in _SDK] == []


def test_the_provider_may_call_nothing_else(counterpart):
    """So that the list cannot be shorter than what the provider does."""
    as_provider = {"X-Daytona-Source": PROVIDER}
    assert counterpart.raw("GET", "/sandbox", headers=as_provider).status_code == 200
    assert "code_run" not in contract_operations() and "activate_snapshot" not in contract_operations()
    assert counterpart.raw("POST", "/snapshots/daytona-small/activate", headers=as_provider).status_code == 501
    assert counterpart.report()["refused"][-1]["client"] == PROVIDER
