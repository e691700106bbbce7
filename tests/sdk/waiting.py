"""Waiting for something to become true, with a deadline instead of a guess."""

import time


# How long nobody looks, at first and later. Only the speed of a test depends on it.
_FIRST, _LATER = 0.02, 0.1


def wait_for(condition, what, deadline=90.0):
    """Returns the first true value of `condition()`; fails with `what` when there is none in time.

    `what` is a text, or a function that makes one when it comes to that.
    """
    end, pause = time.monotonic() + deadline, _FIRST
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline} s: {what() if callable(what) else what}")
        time.sleep(pause)
        pause = min(pause * 1.5, _LATER)
