"""Lets ./test run a failed test again, alone.

Every failed test is written to $SANDYARD_TEST_FAILED: how often pytest counts it as failed (its setup, itself and its teardown each
count) and as passed, and its node id; with tabs between them. When $SANDYARD_TEST_ONLY has a node id, only that test runs.
"""

import os
from collections import Counter

import pytest

_failed, _passed = Counter(), Counter()


def pytest_runtest_logreport(report):
    if report.failed:
        _failed[report.nodeid] += 1
    elif report.when == "call" and report.passed:
        _passed[report.nodeid] += 1


def pytest_sessionfinish():
    if location := os.environ.get("SANDYARD_TEST_FAILED"):
        with open(location, "w") as file:
            file.writelines(f"{count}\t{_passed[name]}\t{name}\n" for name, count in _failed.items())


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    if only := os.environ.get("SANDYARD_TEST_ONLY"):
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid != only])
        items[:] = [item for item in items if item.nodeid == only]
