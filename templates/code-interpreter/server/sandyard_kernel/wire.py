"""The kernel's side of its socket and its pipes."""

import asyncio
import base64
import contextlib
import io
import json
import os
import socket
import struct
import sys
import threading

from .plain import number, plain

# A result larger than this is no use to anybody who waits for it.
MAX_ANSWER = 64 * 1024 * 1024


class Wire:
    """JSON with its length before it, both ways."""

    def __init__(self, connection: socket.socket, marks: "Marks"):
        self._socket = connection
        self._marks = marks
        self._received = bytearray()
        self._sending = threading.Lock()
        self._is_sending = self._is_interrupted = False
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

    def answer(self, answer: dict) -> None:
        """Sends an event to the client, after the output that was printed before it. From any thread."""
        if os.getpid() != self._owner:
            return
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        # Before anything is held or marked: values are put into words by anybody's code, and that may fail.
        data = encoded(answer)
        with self._uninterrupted():
            self._send(data[:-1] + b', "number": %d}' % self._marks.set())

    def send(self, word: dict) -> None:
        """Hands over what is for the server alone. From a forked child nothing goes anywhere."""
        if os.getpid() == self._owner:
            with self._uninterrupted():
                self._send(encode(word))

    def _send(self, data: bytes) -> None:
        self._socket.sendall(struct.pack(">I", len(data)) + data)

    def interrupt(self, *_) -> None:
        """What an interrupt does while code runs. It waits for an answer that is being sent: half of one would corrupt
        all that follow."""
        if self._is_sending:
            self._is_interrupted = True
        else:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def _uninterrupted(self):
        # Only the main thread is ever interrupted.
        is_main = threading.current_thread() is threading.main_thread()
        if is_main:
            self._is_interrupted, self._is_sending = False, True
        try:
            with self._sending:
                yield
        finally:
            if is_main:
                self._is_sending = False
        if is_main and self._is_interrupted:
            raise KeyboardInterrupt


class Marks:
    """Tells the server in the output itself how far it had come when an answer was sent.

    A mark is so short that the kernel writes it in one piece, even if other processes print.
    """

    def __init__(self, word: bytes, *pipes: int):
        self._word = word
        # Of our own: code may put something else in the place of its streams.
        self._pipes = [os.dup(pipe) for pipe in pipes]
        self._number = 0

    def set(self) -> int:
        """Marks every stream and returns the mark's number."""
        self._number += 1
        for pipe in self._pipes:
            # Code may have taken the waiting out of its streams, and with it out of these.
            with contextlib.suppress(OSError):
                os.write(pipe, self._word + struct.pack(">Q", self._number))
        return self._number


def encoded(answer: dict) -> bytes:
    """An answer, or what is said instead of one that is too large."""
    data = encode(answer)
    if len(data) <= MAX_ANSWER:
        return data
    size = len(data) // 1024 // 1024
    text = f"a result of {size} MiB was left out: it is too large to send, write it to a file instead"
    return encode({"type": "result", "text": text, "is_main_result": False})


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
