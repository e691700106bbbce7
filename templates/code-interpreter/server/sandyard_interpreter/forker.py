"""Python kernels: forked from one process that has already imported what they all need."""

import asyncio
import functools
import json
import socket

from .channel import Channel
from .errors import KernelFailed
from .fork_process import ForkProcess
from .kernel import Kernel

# Forking takes milliseconds; the first one also waits for the imports, on a machine that may be busy.
START_SECONDS = 60.0
# How a kernel ended is told at once, unless the machine is busy.
ENDING_SECONDS = 30.0


class Forker:
    """Asks the fork server for kernels, and remembers how they ended."""

    def __init__(self, process: ForkProcess):
        self._process = process
        self._asking = asyncio.Lock()
        self._endings: dict[int, asyncio.Future] = {}
        self._listen()

    def _listen(self) -> None:
        self._answers: asyncio.Queue = asyncio.Queue()
        asyncio.get_running_loop().add_reader(self._process.socket, self._receive)

    def _restart(self) -> None:
        """Code may end any process of its user, this one too."""
        asyncio.get_running_loop().remove_reader(self._process.socket)
        self._hear_no_more()
        self._process.stop()
        self._process.start()
        self._listen()

    # --- asking it

    async def open(self, cwd: str) -> Kernel:
        """A new Python that works in `cwd`."""
        channel = Channel()
        try:
            pid, ending = await self._fork(channel, cwd)
        except BaseException:
            channel.kernel_ends.close()
            channel.close()
            raise
        return Kernel(channel, pid, functools.partial(self._ending, ending))

    async def _fork(self, channel: Channel, cwd: str) -> tuple[int, asyncio.Future]:
        async with self._asking:
            for is_last in (False, True):
                ends = channel.kernel_ends
                try:
                    request = json.dumps({"cwd": cwd, "word": channel.word.hex()}).encode()
                    socket.send_fds(self._process.socket, [request], [ends.control.fileno(), ends.stdout, ends.stderr])
                    answer = await asyncio.wait_for(self._answers.get(), START_SECONDS)
                except (OSError, TimeoutError):
                    answer = None
                if answer is not None and "pid" in answer:
                    return answer["pid"], answer["ending"]
                if is_last:
                    break
                self._restart()
        raise KernelFailed((answer or {}).get("error", "Python could not be started"))

    def _receive(self) -> None:
        try:
            data = self._process.socket.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self._process.socket)
            self._hear_no_more()
            self._answers.put_nowait(None)
            return
        message = json.loads(data)
        if "ended" in message:
            if ending := self._endings.pop(message["ended"], None):
                ending.set_result(message["code"])
            return
        if "pid" in message:
            # A new one each time: numbers of processes come again.
            message["ending"] = self._endings[message["pid"]] = asyncio.get_running_loop().create_future()
        self._answers.put_nowait(message)

    def _hear_no_more(self) -> None:
        """Nobody is left who could tell how the kernels end."""
        while self._endings:
            self._endings.popitem()[1].set_result(None)

    async def _ending(self, ending: asyncio.Future) -> int | None:
        try:
            return await asyncio.wait_for(asyncio.shield(ending), ENDING_SECONDS)
        except TimeoutError:
            return None
