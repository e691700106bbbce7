"""One way to speak to the SDK's synchronous and to its asynchronous half, so that each test is written once and runs with both.

Everything the SDK hands out goes through a proxy. It lets the asynchronous half be called as if it were synchronous, and it
writes down which public methods were called: `test_coverage.py` fails when one never was.
"""

import asyncio
import dataclasses
import enum
import inspect

import e2b

from loop_thread import LoopThread
from surface import half_of

# Nothing takes longer, or it hangs.
_TIMEOUT = 280
# Seconds for commands, terminals and watches, and those the SDK gives them: a busy machine may need more.
_LONG, _DEFAULT = 240, 60

# What was called, as `sync Class.method`.
called = set()


class Half:
    """One half of the SDK: its classes by the names they have in the synchronous one."""

    def __init__(self, is_async):
        self.is_async = is_async
        self._loop = LoopThread() if is_async else None

    def __getattr__(self, name):
        return self.wrap(getattr(e2b, f"Async{name}" if self.is_async else name))

    def client(self, **options):
        """The same half with a connection of its own instead of what the environment says."""
        return Client(self, e2b.E2B(**options))

    def run(self, function, arguments, options):
        """Calls something of the SDK, and waits for it if it has to be awaited."""
        if not self.is_async:
            return function(*arguments, **options)

        async def on_the_loop():
            value = function(*arguments, **options)
            return await value if inspect.isawaitable(value) else value

        return asyncio.run_coroutine_threadsafe(on_the_loop(), self._loop.loop).result(_TIMEOUT)

    def wrap(self, value):
        if isinstance(value, list):
            return [self.wrap(one) for one in value]
        return Proxy(value, self) if is_service(value) or hasattr(value, "__anext__") else value

    def close(self):
        if self._loop:
            self._loop.close()


class Client:
    """The classes of a client with a connection of its own."""

    def __init__(self, half, client):
        self.half, self._client = half, client

    def __getattr__(self, name):
        name = f"Async{name}" if self.half.is_async else name
        return self.half.wrap(getattr(self._client, name))


class Proxy:
    """A class or an object of the SDK, called as if it were synchronous."""

    def __init__(self, inner, half):
        self._inner, self._half = inner, half

    @property
    def is_async(self):
        return self._half.is_async

    @property
    def half(self):
        return self._half

    def __getattr__(self, name):
        value = getattr(self._inner, name)
        if not callable(value):
            self._note(name)
            return self._half.wrap(value)

        def call(*arguments, **options):
            self._note(name)
            return self._half.wrap(self._half.run(value, unwrap(arguments), unwrap(with_time(value, options))))

        return call

    def __iter__(self):
        if hasattr(self._inner, "__iter__"):
            self._note("__iter__")
            yield from self._inner
            return
        iterator = self._half.run(self._inner.__aiter__, (), {})
        while True:
            try:
                yield self._half.run(iterator.__anext__, (), {})
            except StopAsyncIteration:
                return

    def __enter__(self):
        name = "__aenter__" if self.is_async else "__enter__"
        self._note(name)
        self._half.run(getattr(self._inner, name), (), {})
        return self

    def __exit__(self, *error):
        name = "__aexit__" if self.is_async else "__exit__"
        self._note(name)
        self._half.run(getattr(self._inner, name), error, {})

    def _note(self, name):
        of = self._inner if isinstance(self._inner, type) else type(self._inner)
        called.add(f"{half_of(of)} {of.__name__}.{name}")


def with_time(function, options):
    """Options with more time than the SDK's usual minute, where it would end something after that."""
    try:
        time = inspect.signature(function).parameters.get("timeout")
    except ValueError:
        return options  # Not the SDK's own.
    return {"timeout": _LONG, **options} if time and time.default == _DEFAULT else options


def unwrap(value):
    """Arguments as the SDK wants them."""
    if isinstance(value, Proxy):
        return value._inner
    if isinstance(value, dict):
        return {key: unwrap(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(unwrap(one) for one in value)
    return value


def is_service(value):
    """Whether it is a class or an object with methods of the SDK, and not just data."""
    of = value if isinstance(value, type) else type(value)
    if issubclass(of, (BaseException, enum.Enum, dict)) or dataclasses.is_dataclass(of):
        return False
    # Classes bound to a client have the name of their base and no module of the SDK.
    return any(base.__module__.startswith(SERVICES) for base in of.__mro__)


# Where the classes with methods are, for both halves.
SERVICES = (
    "e2b.sandbox_sync",
    "e2b.sandbox_async",
    "e2b.volume.volume_",
    "e2b.secret.",
    "e2b.template_sync",
    "e2b.template_async",
)
