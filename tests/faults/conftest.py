"""The table is printed at the end, with the time it took. `UPDATE_DOCS=1` puts it into docs/faults.md."""

import os
import time

import pytest

import matrix


def pytest_sessionstart(session):
    session.config.stash[_STARTED] = time.monotonic()


_STARTED = pytest.StashKey()


def pytest_terminal_summary(terminalreporter, config):
    seconds = time.monotonic() - config.stash[_STARTED]
    terminalreporter.write_line(f"{len(matrix.answers)} cells in {seconds:.0f} s; what callers got while the fault lasted:")
    terminalreporter.write_line(matrix.table())
    is_whole = len(matrix.answers) == len(matrix.FAULTS) * len(matrix.VERBS)
    if os.environ.get("UPDATE_DOCS") and is_whole:
        text = matrix.DOCUMENT.read_text()
        before, rest = text.split(matrix.BEGIN)
        after = rest.split(matrix.END)[1]
        matrix.DOCUMENT.write_text(f"{before}{matrix.BEGIN}\n{matrix.table()}\n{matrix.END}{after}")


@pytest.fixture(scope="module")
def fault(request):
    """One server for all verbs of a fault, broken again and again."""
    with matrix.FAULTS[request.param]() as fault:
        fault.name = request.param
        yield fault
