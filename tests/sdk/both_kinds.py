"""One way to speak to `Sandbox` and to `AsyncSandbox`, so that each test is written once and runs with both."""

import asyncio
import inspect
import threading

from waiting import wait_for

# Seconds for terminals and watches, whose usual minute a busy machine may need for a test.
LONG = 280


class Blocking:
    """An object of the SDK's asynchronous half, called as if it were synchronous.

    Calls run on an event loop in a thread of its own, as they would in a program; so callbacks and background streams
    make progress while a test waits for something else.
    """

    def __init__(self, inner, loop):
        self._inner, self._loop = inner, loop

    def __getattr__(self, name):
        value = getattr(self._inner, name)
        return self._call(value) if callable(value) else self._wrap(value)

    def __iter__(self):
        """Walks an asynchronous iterator, such as a streamed download."""
        while True:
            try:
                yield self._call(self._inner.__anext__)()
            except StopAsyncIteration:
                return

    def _call(self, function):
        def blocking(*arguments, **options):
            async def on_the_loop():
                value = function(*arguments, **options)
                return await value if inspect.isawaitable(value) else value

            return self._wrap(asyncio.run_coroutine_threadsafe(on_the_loop(), self._loop).result(280))

        return blocking

    def _wrap(self, value):
        is_async_half = type(value).__module__.startswith("e2b.sandbox_async") or hasattr(value, "__anext__")
        return Blocking(value, self._loop) if is_async_half else value


class Terminal:
    """A PTY with everything it printed; hides that only the asynchronous half takes its callback at the start."""

    def __init__(self, sandbox, open_with, *arguments, **options):
        self.sandbox, self.printed, self.result = sandbox, bytearray(), None
        options = {"timeout": LONG, **options}
        if isinstance(sandbox, Blocking):
            self.handle = open_with(*arguments, on_data=self.printed.extend, **options)
        else:
            self.handle = open_with(*arguments, **options)
            # The synchronous half only reads while somebody waits.
            threading.Thread(target=self._read, daemon=True).start()
        self.pid = self.handle.pid

    @classmethod
    def create(cls, sandbox, size, **options):
        return cls(sandbox, sandbox.pty.create, size, **options)

    @classmethod
    def connect(cls, sandbox, pid, **options):
        return cls(sandbox, sandbox.pty.connect, pid, **options)

    def type(self, text):
        self.sandbox.pty.send_stdin(self.pid, text.encode())

    def expect(self, text):
        wait_for(
            lambda: text.encode() in self.printed,
            lambda: f"the terminal prints {text!r}; it printed {bytes(self.printed)!r}",
        )

    def exit_code(self):
        """The exit code, once the shell has ended."""
        return wait_for(self._ended, "the terminal's shell ends")[0]

    def _read(self):
        try:
            self.result = (self.handle.wait(on_pty=self.printed.extend).exit_code,)
        except Exception as error:  # The test checks the code, whatever carried it.
            self.result = (getattr(error, "exit_code", error),)

    def _ended(self):
        if isinstance(self.sandbox, Blocking):
            return None if self.handle.exit_code is None else (self.handle.exit_code,)
        return self.result


class Watch:
    """A directory being watched, with the events so far."""

    def __init__(self, sandbox, path, **options):
        self._events = []
        self._polled = not isinstance(sandbox, Blocking)
        if self._polled:
            self.handle = sandbox.files.watch_dir(path, **options)
        else:
            options = {"timeout": LONG, **options}
            self.handle = sandbox.files.watch_dir(path, on_event=self._events.append, **options)

    def events(self):
        """All events seen so far, oldest first."""
        if self._polled:
            self._events += self.handle.get_new_events()
        return list(self._events)

    def until(self, name):
        """All events up to the first of `name`, the one the caller caused last."""
        wait_for(
            lambda: any(event.name == name for event in self.events()),
            lambda: f"an event of {name!r}; so far: {self._events}",
        )
        return self.events()

    def types_of(self, name):
        """The kinds of the events of one file, in order."""
        return [event.type for event in self.events() if event.name == name]

    def stop(self):
        self.handle.stop()


def stream_input(sandbox, to, pid, pieces):
    """Sends pieces of input over one stream, to `sandbox.commands` or `sandbox.pty`."""
    if not isinstance(sandbox, Blocking):
        to.stream_input(pid, pieces)
        return
    stream = to.stream_input(pid)
    for piece in pieces:
        stream.send(piece)
    stream.close()


def callbacks(sandbox, **options):
    """Options for a background command whose output goes to callbacks: at the start or, synchronously, at `wait`."""
    return (options, {}) if isinstance(sandbox, Blocking) else ({}, options)
