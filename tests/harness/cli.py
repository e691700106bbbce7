"""The command line as people use it: in a pipe, or in a terminal of its own."""

import fcntl
import os
import pty
import struct
import subprocess
import termios
import threading

from program import environment, find_program
from waiting import wait_for


class Cli:
    """`sandyard` in pipes. What it prints is collected as it comes."""

    def __init__(self, url, *parts):
        command = [str(find_program()), "--url", url, *(str(word) for word in parts)]
        self._process = subprocess.Popen(
            command,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.stdout, self.stderr = bytearray(), bytearray()
        pairs = ((self._process.stdout, self.stdout), (self._process.stderr, self.stderr))
        self._threads = [threading.Thread(target=_collect, args=pair, daemon=True) for pair in pairs]
        for thread in self._threads:
            thread.start()

    def write(self, data):
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def end_input(self):
        self._process.stdin.close()

    def wait_for_output(self, count):
        wait_for(lambda: len(self.stdout) >= count or self._process.poll() is not None, "output comes")
        assert len(self.stdout) >= count, (self._process.poll(), bytes(self.stderr))

    def wait(self):
        """Waits for its end; returns its exit code."""
        code = self._process.wait(timeout=120)
        for thread in self._threads:
            thread.join(timeout=120)
        return code

    def close(self):
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class TerminalCli:
    """`sandyard` in a terminal."""

    def __init__(self, url, *parts, size=(80, 24)):
        self._terminal, inside = pty.openpty()
        self.resize(size)
        command = [str(find_program()), "--url", url, *(str(word) for word in parts)]
        self._process = subprocess.Popen(
            command,
            env=environment(TERM="xterm"),
            stdin=inside,
            stdout=inside,
            stderr=inside,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(inside)
        self.displayed = bytearray()
        self._thread = threading.Thread(target=self._collect, daemon=True)
        self._thread.start()

    def _collect(self):
        try:
            while piece := os.read(self._terminal, 65536):
                self.displayed.extend(piece)
        except OSError:
            pass  # EIO: the other side is closed.

    def resize(self, size):
        cols, rows = size
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def type(self, text):
        os.write(self._terminal, text.encode())

    def wait_for(self, text, times=1):
        """Waits until a text is shown."""
        wait_for(
            lambda: self.displayed.count(text.encode()) >= times or self._process.poll() is not None,
            lambda: f"{text!r} is shown: {bytes(self.displayed)!r}",
        )
        assert self.displayed.count(text.encode()) >= times, (self._process.poll(), bytes(self.displayed))

    def wait(self):
        code = self._process.wait(timeout=120)
        self._thread.join(timeout=120)
        return code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._terminal)


def _collect(pipe, into):
    while piece := pipe.read1(65536):
        into.extend(piece)
