"""What the two halves of the SDK do differently: terminals, watches, streamed input, callbacks of background commands."""

import threading

from waiting import wait_for


class Terminal:
    """A PTY with everything it printed; only the asynchronous half takes its callback at the start."""

    def __init__(self, sandbox, open_with, *arguments, **options):
        self.sandbox, self.printed, self.result = sandbox, bytearray(), None
        if sandbox.is_async:
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

    def ending(self):
        """Its exit code once the shell has ended, or the error its stream ended with."""
        if self.sandbox.is_async:
            threading.Thread(target=self._wait, daemon=True).start()
        return wait_for(lambda: self.result, "the terminal ends")[0]

    def _read(self):
        self._keep(lambda: self.handle.wait(on_pty=self.printed.extend))

    def _wait(self):
        self._keep(self.handle.wait)

    def _keep(self, wait):
        try:
            self.result = (wait().exit_code,)
        except Exception as error:  # A non-zero exit code is carried by an error too.
            self.result = (getattr(error, "exit_code", error),)


class Watch:
    """A directory being watched, with the events so far. `error` is what ended it, in a tuple, once something did."""

    def __init__(self, sandbox, path, **options):
        self._events, self.error = [], None
        self._polled = not sandbox.is_async
        if self._polled:
            self.handle = sandbox.files.watch_dir(path, **options)
        else:
            self.handle = sandbox.files.watch_dir(path, on_event=self._events.append, on_exit=self._ended, **options)

    def _ended(self, error):
        self.error = (error,)

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
    if not sandbox.is_async:
        to.stream_input(pid, pieces)
        return
    with to.stream_input(pid) as stream:
        for piece in pieces:
            stream.send(piece)
        stream.close()


def callbacks(sandbox, **options):
    """Options for a background command whose output goes to callbacks: at the start or, synchronously, at `wait`."""
    return (options, {}) if sandbox.is_async else ({}, options)


class Follower:
    """Reads a background command to its end in a thread; keeps all it printed, line by line if asked, and how it ended."""

    def __init__(self, handle, sandbox, printed=None):
        self.handle, self.printed, self.ending = handle, printed if printed is not None else [], None
        options = {} if sandbox.is_async else {"on_stdout": self.printed.append}
        self._thread = threading.Thread(target=self._follow, args=(options,), daemon=True)
        self._thread.start()

    @classmethod
    def run(cls, sandbox, command, **options):
        """Starts a command and follows it."""
        printed = []
        if sandbox.is_async:
            options["on_stdout"] = printed.append
        return cls(sandbox.commands.run(command, background=True, **options), sandbox, printed)

    @classmethod
    def connect(cls, sandbox, pid, **options):
        """Follows a command that runs already."""
        printed = []
        if sandbox.is_async:
            options["on_stdout"] = printed.append
        return cls(sandbox.commands.connect(pid, **options), sandbox, printed)

    def _follow(self, options):
        try:
            self.ending = (self.handle.wait(**options),)
        except Exception as error:  # Whatever it was, the test wants to see it.
            self.ending = (error,)

    def ended(self, deadline=120.0):
        """The result of the command, or the error its stream ended with."""
        return wait_for(lambda: self.ending, "the stream of the command ends", deadline)[0]

    def text(self):
        return "".join(self.printed)
