"""Changing a library when code imports it, and not before: most code never does, and importing it costs everybody."""

import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from types import ModuleType


def when_imported(name: str, change: Callable[[ModuleType], None]) -> None:
    """Calls `change` with the module as soon as it is there."""
    sys.meta_path.insert(0, Watch(name, change))


class Watch:
    """A finder that finds the module as Python itself would, and steps in when it is loaded."""

    def __init__(self, name: str, change: Callable[[ModuleType], None]):
        self._name = name
        self._change = change

    def find_spec(self, name, path=None, target=None):
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec and spec.loader:
            load = spec.loader.exec_module

            def loading(module):
                load(module)
                self._change(module)

            spec.loader.exec_module = loading
        return spec
