"""Every verb under every fault: what was acknowledged is there, nothing is stuck, nobody had to help, and messages name the cause."""

import pytest

import matrix
from cell import assert_typed
from fault import Moment
from verbs import VERBS


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("fault", matrix.FAULTS, indirect=True, scope="module")
def test_verb_under_fault(fault, verb):
    delays = fault.moments if isinstance(fault, Moment) else (None,)
    replies = []
    cell = fault.cell()
    try:
        for delay in delays:
            action = VERBS[verb](cell)
            action.prepare()
            reply = fault.strike(action) if delay is None else fault.strike_at(action, delay)
            replies.append(reply)
            if reply is not None and reply.status_code != 200:
                assert_typed(reply)
            cell.check_nothing_is_stuck()
            action.check_sandbox()
            if not is_unsupported(reply):
                action.check(reply is not None and reply.status_code == 200)
    finally:
        cell.close()
    matrix.note(fault.name, verb, replies)


def is_unsupported(reply):
    """What a provider never offers is refused the same way, broken or not."""
    return reply is not None and reply.status_code != 200 and reply.json()["code"] == "unsupported"


def test_the_document_has_every_row_and_column():
    text = matrix.DOCUMENT.read_text()
    stored = text.split(matrix.BEGIN)[1].split(matrix.END)[0].strip().splitlines()
    header, rows = stored[0], stored[2:]
    assert [cell.strip() for cell in header.split("|")[2:-1]] == list(VERBS)
    assert [row.split("|")[1].strip() for row in rows] == list(matrix.FAULTS)
    assert all(cell.strip() for row in rows for cell in row.split("|")[1:-1]), "a cell is empty"
