"""Waiting for something to become true, with a deadline instead of a guess."""

import asyncio
import time

# How long nobody looks, at first and later. Only the speed of a test depends on it; to look often means to run a program.
_FIRST, _LATER = 0.02, 0.1
# Tests share two cores with a compiler and five other suites; nothing is measured by this.
_TIMEOUT = 90.0


def wait_for(condition, what, deadline=_TIMEOUT):
    """Returns the first true value of `condition()`; fails with `what`, a text or a function that makes one."""
    end, pause = time.monotonic() + deadline, _FIRST
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline} s: {what() if callable(what) else what}")
        time.sleep(pause)
        pause = min(pause * 1.5, _LATER)


async def wait_until(condition, what, deadline=_TIMEOUT):
    """The same for a condition that is awaited."""
    end, pause = time.monotonic() + deadline, _FIRST
    while True:
        value = await condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline} s: {what() if callable(what) else what}")
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, _LATER)
