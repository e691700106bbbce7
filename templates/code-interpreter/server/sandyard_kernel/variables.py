"""Environment variables: the sandbox's, and those of one execution."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


class Variables:
    """Sets variables and takes those of an execution back."""

    @contextmanager
    def during(self, changed: dict[str, str | None], own_variables: dict[str, str]) -> Iterator[None]:
        """`changed` stays; `own` is as it was before when the execution ends."""
        apply(changed)
        before = {name: os.environ.get(name) for name in own_variables}
        apply(own_variables)
        try:
            yield
        finally:
            apply(before)


def apply(variables: dict[str, str | None]) -> None:
    for name, value in variables.items():
        try:
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        except (OSError, ValueError):
            # A name that no process can have.
            continue
