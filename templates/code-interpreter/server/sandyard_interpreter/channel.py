"""The server's ends of a kernel: a socket for requests and answers, a pipe for each output stream, its process."""

import asyncio
import contextlib
import fcntl
import os
import secrets
import select
import signal
import socket
import struct
import termios
from dataclasses import dataclass

from .output import Output

# How much is taken at once from a socket or a pipe; a pipe holds as much.
CHUNK = 64 * 1024


@dataclass
class KernelEnds:
    """What the kernel's process gets. Closed here as soon as it has them."""

    control: socket.socket
    stdout: int
    stderr: int

    def close(self) -> None:
        self.control.close()
        os.close(self.stdout)
        os.close(self.stderr)


class Channel:
    """Reads whatever comes first. Nothing is read unless asked for, so a slow client slows the code down, not the memory."""

    def __init__(self):
        self.control, control = socket.socketpair()
        self._stdout, stdout = os.pipe()
        self._stderr, stderr = os.pipe()
        self.kernel_ends = KernelEnds(control, stdout, stderr)
        self.control.setblocking(False)
        # What a kernel marks its output with. Random, so that no output looks like it.
        self.word = b"\0" + secrets.token_bytes(16)
        self.outputs = {"stdout": Output(self.word), "stderr": Output(self.word)}
        for pipe in (self._stdout, self._stderr):
            os.set_blocking(pipe, False)
        # One descriptor that is readable when any of them is.
        self._any = select.epoll()
        for descriptor in (self.control, self._stdout, self._stderr):
            self._any.register(descriptor, select.EPOLLIN)
        self._process: int | None = None

    def watch(self, pid: int) -> None:
        """Makes the end of the process count as something to read.

        The socket alone would not do: children of a dead kernel may hold the other end.
        """
        try:
            self._process = os.pidfd_open(pid)
        except ProcessLookupError:
            # Gone already; the socket tells.
            return
        self._any.register(self._process, select.EPOLLIN)

    async def ends(self, seconds: float) -> bool:
        """Whether the process ends within some time."""
        end = asyncio.get_running_loop().time() + seconds
        while not self.has_ended():
            if self._process is None or asyncio.get_running_loop().time() > end:
                return self._process is None
            await asyncio.sleep(0.01)
        return True

    def kill(self) -> None:
        """Ends the process, and never another that has got its number."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._process, signal.SIGKILL)

    async def wait(self) -> None:
        """Returns when there is something to read."""
        ready = asyncio.Event()
        asyncio.get_running_loop().add_reader(self._any.fileno(), ready.set)
        try:
            await ready.wait()
        finally:
            self._stop_waiting()

    def _stop_waiting(self) -> None:
        # After `close` the number may be another's.
        if not self._any.closed:
            asyncio.get_running_loop().remove_reader(self._any.fileno())

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.control, data)

    def read_control(self) -> bytes | None:
        """What the kernel answered; none when it is gone."""
        try:
            data = self.control.recv(CHUNK)
        except BlockingIOError:
            return None if self.has_ended() else b""
        except OSError:
            return None
        return data or None

    def read_outputs(self) -> None:
        for pipe, output in zip((self._stdout, self._stderr), self.outputs.values(), strict=True):
            output.add(self._read(pipe))

    def _read(self, pipe: int) -> bytes:
        """Reads what is in the pipe now and no more: a program that never stops printing must not block the caller."""
        waiting = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0]
        try:
            data = os.read(pipe, waiting or CHUNK)
        except BlockingIOError:
            return b""
        if not data:
            self._forget(pipe)
        return data

    def _forget(self, pipe: int) -> None:
        # A closed pipe is readable for ever.
        with contextlib.suppress(FileNotFoundError):
            self._any.unregister(pipe)

    def has_ended(self) -> bool:
        if self._process is None:
            return False
        return bool(select.select([self._process], [], [], 0)[0])

    def close(self) -> None:
        self._stop_waiting()
        self._any.close()
        self.control.close()
        os.close(self._stdout)
        os.close(self._stderr)
        if self._process is not None:
            os.close(self._process)
            self._process = None
