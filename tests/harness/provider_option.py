"""The option `--provider` of suites that run with more than one provider; a plugin of their conftest.py.

What a provider does not offer is not skipped: the suite's `unsupported.py` says for each such test how it must fail, and the
test passes if it fails in just that way. What cannot be asked of a provider at all stands there too, with the reason.
"""

from fnmatch import fnmatch

import pytest

import providers

NAMES = ("embedded", "docker")


def pytest_addoption(parser):
    parser.addoption("--provider", choices=NAMES, default="embedded", help="what runs the sandboxes")


def pytest_configure(config):
    providers.chosen = config.getoption("provider")
    config.stash[_LISTS] = _lists(config.getoption("provider"))


def _lists(name):
    """Tests that must fail in a certain way, and those that are left out, both by pattern."""
    if name == "embedded":
        return {}, {}
    import unsupported

    return unsupported.REFUSED[name], unsupported.LEFT_OUT[name]


_LISTS = pytest.StashKey()


def pytest_report_header(config):
    name, (_, left_out) = config.getoption("provider"), config.stash[_LISTS]
    return [f"provider: {name}", *(f"left out: {test}: {reason}" for test, reason in left_out.items())]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    _, left_out = config.stash[_LISTS]
    removed = [item for item in items if _find(left_out, item) is not None]
    config.hook.pytest_deselected(items=removed)
    items[:] = [item for item in items if item not in removed]


def _find(table, item):
    name = item.nodeid.partition("[")[0].rpartition("/")[2]
    return next((value for pattern, value in table.items() if fnmatch(name, pattern)), None)


@pytest.fixture(scope="session", autouse=True)
def provider(request):
    """The provider of this run; `provider.instances(server)` is what is there behind a server."""
    if request.config.getoption("provider") == "embedded":
        yield providers.Embedded()
        return
    docker = providers.Docker()
    with docker:
        yield docker


# --- tests that must fail in the way that is written down



@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    refusal = _find(item.config.stash[_LISTS][0], item)
    try:
        return (yield)
    except (Exception, pytest.fail.Exception) as error:
        if refusal is None:
            raise
        _check(refusal, error)
        # There is nothing left to call.
        item.runtest = lambda: None
        item.has_met_refusal = True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    refusal = _find(item.config.stash[_LISTS][0], item)
    if refusal is None or getattr(item, "has_met_refusal", False):
        return (yield)
    try:
        yield
    except (Exception, pytest.fail.Exception) as error:
        _check(refusal, error)
        return None
    pytest.fail(f"it works: take it off the list, where it is to fail with {refusal!r}")


def _check(refusal, error):
    """`Name: words`: the class of the error, and what it must say."""
    name, _, parts = refusal.partition(": ")
    response = str(error)
    if name not in [base.__name__ for base in type(error).__mro__] or parts not in response:
        raise AssertionError(f"it fails, but not with {refusal!r}") from error
