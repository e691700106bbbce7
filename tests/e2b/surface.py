"""The public methods of the SDK in use, found by looking at it, so that none is forgotten when the SDK grows."""

import dataclasses
import enum
import importlib
import inspect
import typing
from pathlib import Path

import e2b

# Where the classes with methods are. `test_coverage.py` fails when a public class is neither here nor plain data.
PACKAGES = ("e2b.sandbox_sync", "e2b.sandbox_async", "e2b.volume", "e2b.secret", "e2b.client")

# Generated code below them that nobody calls.
INTERNAL = ("e2b.volume.client", "e2b.volume.connection_config", "e2b.volume.utils", "e2b.sandbox_async.utils")

PROTOCOLS = ("__enter__", "__exit__", "__aenter__", "__aexit__", "__iter__", "__aiter__")


def modules():
    """Every module of these packages. Found by file: some folders of the SDK are packages without saying so."""
    root = Path(e2b.__file__).parent
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name.startswith(PACKAGES) and not name.startswith(INTERNAL):
            yield importlib.import_module(name)


def classes():
    """Every class with methods that a caller can get hold of."""
    found = {}
    for module in modules():
        for name, value in vars(module).items():
            is_own = inspect.isclass(value) and value.__module__ == module.__name__ and not name.startswith("_")
            if is_own and not is_data(value):
                found[f"{value.__module__}.{name}"] = value
    everything = list(found.values())
    # A base is covered by what is made of it.
    return [cls for cls in everything if not any(other is not cls and issubclass(other, cls) for other in everything)]


def is_data(value):
    kinds = (BaseException, enum.Enum, dict)
    return issubclass(value, kinds) or dataclasses.is_dataclass(value) or typing.is_typeddict(value)


def methods():
    """All public methods and properties, as `sync Class.method`; several classes have the same name in both halves."""
    return {f"{half_of(cls)} {cls.__name__}.{name}" for cls in classes() for name in public(cls)}


def half_of(cls):
    """Which half of the SDK a class is of."""
    return "async" if any("async" in base.__module__ for base in cls.__mro__) else "sync"


def public(cls):
    for name in dir(cls):
        is_said = not name.startswith("_") or (name in PROTOCOLS and name in own_names(cls))
        value = inspect.getattr_static(cls, name)
        if is_said and (callable(getattr(cls, name)) or isinstance(value, property)):
            yield name


def own_names(cls):
    """What the SDK's own classes define, without what every object has."""
    return {name for base in cls.__mro__ if base.__module__.startswith("e2b.") for name in vars(base)}


def unknown_exports():
    """Classes the SDK exports that are neither data nor covered here."""
    existing = set(classes()) | {base for cls in classes() for base in cls.__mro__}
    exported = (getattr(e2b, name) for name in e2b.__all__)
    return sorted(
        cls.__name__ for cls in exported if inspect.isclass(cls) and not is_data(cls) and cls not in existing and is_own(cls)
    )


def is_own(cls):
    return cls.__module__.startswith("e2b")


def exceptions():
    """Every exception class the SDK exports."""
    exported = (getattr(e2b, name) for name in e2b.__all__)
    return sorted({cls.__name__ for cls in exported if inspect.isclass(cls) and issubclass(cls, Exception)})
