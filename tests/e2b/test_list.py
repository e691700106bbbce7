"""Listing sandboxes: pages, order and every filter."""

import e2b
import pytest
from e2b import SandboxQuery, SandboxState


def all_of(paginator):
    """Every item, page by page."""
    found = []
    while paginator.has_next:
        found += paginator.next_items()
    return found


def ids(paginator):
    return [item.sandbox_id for item in all_of(paginator)]


@pytest.fixture
def three(make, mark):
    """Three sandboxes, oldest first; the last is paused."""
    created = [make(metadata={"mark": mark, "number": str(number)}) for number in range(3)]
    created[2].pause()
    return [sandbox.sandbox_id for sandbox in created]


def test_newest_comes_first_or_last(half, three, mark):
    query = SandboxQuery(metadata={"mark": mark})
    assert ids(half.Sandbox.list(query=query)) == three[::-1]
    assert ids(half.Sandbox.list(query=query, order="desc")) == three[::-1]
    assert ids(half.Sandbox.list(query=query, order="asc")) == three


def test_state_is_asked_for(half, three, mark):
    def of(*states):
        return sorted(ids(half.Sandbox.list(query=SandboxQuery(metadata={"mark": mark}, state=list(states)))))

    assert of(SandboxState.RUNNING) == sorted(three[:2])
    assert of(SandboxState.PAUSED) == three[2:]
    assert of(SandboxState.RUNNING, SandboxState.PAUSED) == sorted(three)


def test_listed_sandbox_tells_its_state_and_metadata(half, three, mark):
    found = {item.sandbox_id: item for item in all_of(half.Sandbox.list(query=SandboxQuery(metadata={"mark": mark})))}
    assert [found[one].metadata["number"] for one in three] == ["0", "1", "2"]
    assert [found[one].state for one in three] == [SandboxState.RUNNING, SandboxState.RUNNING, SandboxState.PAUSED]
    assert all(item.end_at > item.started_at and item.cpu_count and item.memory_mb for item in found.values())


def test_pages_are_followed_to_the_end(half, three, mark):
    paginator = half.Sandbox.list(query=SandboxQuery(metadata={"mark": mark}), limit=2)
    first = paginator.next_items()
    assert [len(first), paginator.has_next, bool(paginator.next_token)] == [2, True, True]
    # Another client goes on from there.
    rest = half.Sandbox.list(query=SandboxQuery(metadata={"mark": mark}), limit=2, next_token=paginator.next_token)
    second = rest.next_items()
    assert rest.has_next is False and rest.next_token is None
    assert [item.sandbox_id for item in first + second] == three[::-1]
    with pytest.raises(Exception, match="No more items"):
        rest.next_items()


def test_pages_hold_still_while_sandboxes_come_and_go(half, make, mark):
    created = [make(metadata={"mark": mark}).sandbox_id for _ in range(4)]
    paginator = half.Sandbox.list(query=SandboxQuery(metadata={"mark": mark}), limit=2)
    first = [item.sandbox_id for item in paginator.next_items()]
    make(metadata={"mark": mark})
    half.Sandbox.kill(first[0])
    assert [item.sandbox_id for item in paginator.next_items()] == created[1::-1]


def test_broken_tokens_and_limits_are_refused(half):
    with pytest.raises(e2b.SandboxException, match="^400: "):
        half.Sandbox.list(next_token="broken").next_items()
    with pytest.raises(e2b.SandboxException):
        half.Sandbox.list(limit=1_000_000).next_items()


@pytest.mark.parametrize("value", ["plain", "a b", "a=b", "a&b", "100%", "ünï☃", "a+b", "%20", "/x?y#z", ""])
def test_metadata_is_compared_whole(half, make, mark, value):
    fresh_sandbox = make(metadata={"mark": mark, "odd & key": value})
    make(metadata={"mark": mark, "odd & key": "other"})
    assert ids(half.Sandbox.list(query=SandboxQuery(metadata={"mark": mark, "odd & key": value}))) == [fresh_sandbox.sandbox_id]


def test_start_time_and_template_are_filters_too(half, three, mark):
    every = {item.sandbox_id: item for item in all_of(half.Sandbox.list(query=SandboxQuery(metadata={"mark": mark})))}
    later = SandboxQuery(metadata={"mark": mark}, started_after=every[three[1]].started_at)
    assert ids(half.Sandbox.list(query=later)) == three[:0:-1]
    base = SandboxQuery(metadata={"mark": mark}, template="base")
    assert ids(half.Sandbox.list(query=base)) == three[::-1]
    other = SandboxQuery(metadata={"mark": mark}, template="another")
    assert ids(half.Sandbox.list(query=other)) == []


def test_killed_ones_are_not_listed(half, fresh_sandbox):
    half.Sandbox.kill(fresh_sandbox.sandbox_id)
    assert fresh_sandbox.sandbox_id not in ids(half.Sandbox.list())
