"""Waiting for something to become true, with a deadline instead of a guess."""

import time


def wait_for(condition, what, deadline=15.0):
    """Returns the first true value of `condition()`; fails with `what` when there is none in time.

    `what` is a text, or a function that makes one when it comes to that.
    """
    end = time.monotonic() + deadline
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline} s: {what() if callable(what) else what}")
        time.sleep(0.02)
