"""Waiting for something to become true, with a deadline instead of a guess."""

import asyncio
import time

# How often is looked. Only the speed of a test depends on it.
_EVERY = 0.02


def wait_for(condition, what, deadline=20.0):
    """Returns the first true value of `condition()`; fails with `what`, a text or a function that makes one."""
    end = time.monotonic() + deadline
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline} s: {what() if callable(what) else what}")
        time.sleep(_EVERY)


async def wait_until(condition, what, deadline=20.0):
    """The same for a condition that is awaited."""
    end = time.monotonic() + deadline
    while True:
        value = await condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline} s: {what() if callable(what) else what}")
        await asyncio.sleep(_EVERY)
