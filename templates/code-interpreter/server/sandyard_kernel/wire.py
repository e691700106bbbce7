"""The kernel's side of its socket and its pipes."""

import asyncio
import base64
import fcntl
import io
import json
import os
import socket
import struct
import sys
import termios
import threading
import time

from .plain import number, plain

# A result larger than this is no use to anybody who waits for it.
MAX_ANSWER = 64 * 1024 * 1024
MAX_WAIT_SECONDS = 0.2


class Wire:
    """JSON with its length before it, both ways."""

    def __init__(self, connection: socket.socket):
        self._socket = connection
        self._received = bytearray()
        self._sending = threading.Lock()
        self._owner = os.getpid()

    async def receive(self) -> dict | None:
        """The next request; none when the server is gone."""
        while not self._has_whole():
            await self._wait()
            # Asked not to wait: the socket itself waits, so that sending is simple.
            data = self._socket.recv(65536, socket.MSG_DONTWAIT)
            if not data:
                return None
            self._received += data
        size = struct.unpack_from(">I", self._received)[0]
        request = json.loads(bytes(self._received[4 : 4 + size]))
        del self._received[: 4 + size]
        return request

    def _has_whole(self) -> bool:
        received = len(self._received)
        return received >= 4 and received >= 4 + struct.unpack_from(">I", self._received)[0]

    async def _wait(self) -> None:
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._socket, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(self._socket)

    def send_in_order(self, answer: dict) -> None:
        """Hands an answer over when what was printed before it has been read."""
        self.send({**answer, "in_order": have_been_read(1, 2)})

    def send(self, answer: dict) -> None:
        """Hands an answer over. From any thread; from a forked child it goes nowhere."""
        if os.getpid() != self._owner:
            return
        data = encode(answer)
        if len(data) > MAX_ANSWER:
            size = len(data) // 1024 // 1024
            text = f"a result of {size} MiB was left out: it is too large to send, write it to a file instead"
            data = encode({"type": "result", "text": text, "is_main_result": False})
        with self._sending:
            self._socket.sendall(struct.pack(">I", len(data)) + data)


def have_been_read(*pipes: int) -> bool:
    """Waits until the pipes are empty. Not for long: the client may be slow, or a child may never stop printing."""
    sys.stdout.flush()
    sys.stderr.flush()
    end = time.monotonic() + MAX_WAIT_SECONDS
    try:
        while any(fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4) != b"\0" * 4 for pipe in pipes):
            if time.monotonic() > end:
                return False
            time.sleep(0.0002)
    except OSError:
        # Code may have put something else there.
        return False
    return True


def encode(answer: dict) -> bytes:
    """JSON that every reader takes: results are made by anybody's code, and JSON has no word for infinity."""
    try:
        return json.dumps(answer, default=json_default, allow_nan=False).encode()
    except ValueError:
        return json.dumps(finite(json.loads(json.dumps(answer, default=json_default)))).encode()


def json_default(value):
    """What JSON does not know: bytes in base64, as pictures are; whatever else is its text."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    return plain(value)


def finite(value):
    match value:
        case dict():
            return {name: finite(each) for name, each in value.items()}
        case list():
            return [finite(each) for each in value]
        case float():
            return number(value)
    return value


class Output(io.TextIOWrapper):
    """A standard stream that keeps nothing back: the server gathers what belongs together."""

    def __init__(self, descriptor: int, name: str):
        raw = io.FileIO(descriptor, "w", closefd=False)
        super().__init__(io.BufferedWriter(raw), encoding="utf-8", errors="backslashreplace", newline="\n")
        self.mode = "w"
        self._name = name

    def write(self, text: str) -> int:
        count = super().write(text)
        self.flush()
        return count


def redirect_streams(stdout: int, stderr: int) -> None:
    """Makes the pipes what this process and its children print to, and gives them nothing to read."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (stdout, 1), (stderr, 2)):
        os.dup2(source, target, inheritable=True)
        os.close(source)
    sys.stdin = open(0, closefd=False)
    sys.stdout = sys.__stdout__ = Output(1, "<stdout>")
    sys.stderr = sys.__stderr__ = Output(2, "<stderr>")
