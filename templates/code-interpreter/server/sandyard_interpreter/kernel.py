"""A running process that executes code of one language, one piece after the other."""

import asyncio
import contextlib
import json
import os
import signal
import struct
from collections.abc import AsyncIterator, Awaitable, Callable

from . import events
from .channel import Channel
from .errors import KernelEnded, KernelFailed
from .output import Output

# What is printed within this time goes out as one line: code prints piece by piece, and each line costs the client.
GATHER_SECONDS = 0.02
GATHER_CHARACTERS = 256 * 1024
# Kernels leave out larger results themselves; a process that sends more is not a kernel of this server any more.
MAX_FRAME = 128 * 1024 * 1024
# How long a process may take to end that says nothing any more.
ENDING_SECONDS = 10.0


class Kernel:
    """A process and the conversation with it.

    Requests and answers are JSON with a length before it. Output is taken from the process's own streams, so that it
    does not matter whether the code, a library or a child printed it.
    """

    program = "Python"

    def __init__(self, channel: Channel, pid: int, ending: Callable[[], Awaitable[int | None]]):
        self.pid = pid
        self._channel = channel
        # The exit code, once the process has ended, if it can be had; below zero is the signal that ended it.
        self._ending = ending
        self._received = bytearray()
        self._count = 0
        self._variables: dict[str, str] = {}
        self._idle: asyncio.Task | None = None
        self.is_gone = False
        # Whether the code of the request has begun, and whether somebody has asked it to stop.
        self._is_started = False
        self._is_unwanted = False
        channel.kernel_ends.close()
        channel.watch(pid)
        self._rest()

    # --- executing

    async def run(self, code: str, variables: dict[str, str], own_variables: dict[str, str]) -> AsyncIterator[dict]:
        """Executes code and yields its events. `variables` are the sandbox's, `own` are for this execution only."""
        await self._wake()
        self._count += 1
        self._is_started = self._is_unwanted = False
        try:
            await self._channel.send(self.encode(code, self._changed(variables), own_variables))
            yield events.count(self._count)
            async for event in self._answers():
                yield event
        except OSError:
            raise await self._death() from None
        finally:
            self._rest()

    def encode(self, code: str, changed: dict[str, str | None], own_variables: dict[str, str]) -> bytes:
        """The request as the process reads it."""
        request = json.dumps({"code": code, "set": changed, "own": own_variables}).encode()
        return struct.pack(">I", len(request)) + request

    def decode(self, received: bytearray) -> list[dict]:
        """Takes the complete answers from what was received."""
        answers = []
        while len(received) >= 4:
            size = struct.unpack_from(">I", received)[0]
            if size > MAX_FRAME:
                raise KernelFailed("the kernel's answer is no answer")
            if len(received) < 4 + size:
                break
            answers.append(json.loads(bytes(received[4 : 4 + size])))
            del received[: 4 + size]
        return answers

    def interrupt(self) -> None:
        """Asks the code to stop, at once or as soon as it has begun: before that nothing would hear it."""
        self._is_unwanted = True
        if self._is_started:
            self.signal()

    def signal(self) -> None:
        """Interrupts the process and its children, as a terminal would."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGINT)

    def kill(self) -> None:
        """Ends the process and its children."""
        self.is_gone = True
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        # One that was made a moment ago may not lead a group yet.
        self._channel.kill()

    def close(self) -> None:
        """Gives back what the server holds for it. The process has ended or does so now."""
        self.kill()
        if self._idle:
            self._idle.cancel()
        self._channel.close()

    # --- reading

    async def _answers(self) -> AsyncIterator[dict]:
        outputs = self._channel.outputs.values()
        started = None
        while True:
            if not await self._wait(started):
                for event in self._output_events(Output.take):
                    yield event
                started = None
                continue
            # Answers first: what was printed before one is in the pipes by the time it can be read.
            data = self._channel.read_control()
            answers = self._decoded(data) if data else []
            self._channel.read_outputs()
            is_last = data is None or any(answer["type"] == "done" for answer in answers)
            for answer in answers:
                if answer["type"] == "done":
                    self.is_gone = self.is_gone or answer.get("exits", False)
                    break
                for event in self._before(answer):
                    yield event
                yield answer
            if is_last:
                for event in self._output_events(Output.take_all):
                    yield event
                if data is None:
                    raise await self._death()
                return
            if answers or sum(map(len, outputs)) >= GATHER_CHARACTERS:
                for event in self._output_events(Output.take):
                    yield event
                started = None
            elif started is None and any(outputs):
                started = asyncio.get_running_loop().time()

    def _before(self, answer: dict) -> list[dict]:
        """What was printed before an answer."""
        number = answer.pop("number", None)
        return self._output_events(Output.take if number is None else lambda output: output.take_until(number))

    def _output_events(self, take: Callable[[Output], str]) -> list[dict]:
        texts = ((name, take(output)) for name, output in self._channel.outputs.items())
        return [events.output(name, text) for name, text in texts if text]

    def _decoded(self, data: bytes) -> list[dict]:
        """The answers that are complete now, without the one that says that the code has begun."""
        self._received += data
        answers = self.decode(self._received)
        if any(answer["type"] == "started" for answer in answers):
            self._is_started = True
            if self._is_unwanted:
                self.signal()
        return [answer for answer in answers if answer["type"] != "started"]

    async def _wait(self, started: float | None) -> bool:
        """Waits for something to read; false when what was gathered has waited long enough."""
        if started is None:
            await self._channel.wait()
            return True
        try:
            async with asyncio.timeout_at(started + GATHER_SECONDS):
                await self._channel.wait()
            return True
        except TimeoutError:
            return False

    # --- between executions

    def _rest(self) -> None:
        """Discards output between executions, so that a program that prints does not block."""
        if not self.is_gone:
            self._idle = asyncio.ensure_future(self._discard())

    async def _discard(self) -> None:
        while True:
            await self._channel.wait()
            data = self._channel.read_control()
            self._channel.read_outputs()
            if data is None:
                self.is_gone = True
                return
            self._received += data
            for answer in self.decode(self._received):
                self._before(answer)
            self._output_events(Output.take_all)
            # One who never stops printing must not take the processor from those who execute.
            await asyncio.sleep(GATHER_SECONDS)

    async def _wake(self) -> None:
        if self._idle:
            self._idle.cancel()
            await asyncio.gather(self._idle, return_exceptions=True)
            self._idle = None
        if self.is_gone:
            raise await self._death()

    # --- its state

    def _changed(self, variables: dict[str, str]) -> dict[str, str | None]:
        """The sandbox's variables that are new or other than the kernel has been told; those that are gone as none.

        Only the changes, so that what code itself has put into its environment stays.
        """
        changed: dict[str, str | None] = dict.fromkeys(self._variables.keys() - variables.keys())
        changed.update({name: value for name, value in variables.items() if self._variables.get(name) != value})
        self._variables = dict(variables)
        return changed

    async def _death(self) -> KernelEnded:
        self.is_gone = True
        if not await self._channel.ends(ENDING_SECONDS):
            # It has closed its socket and lives on, as daemons do.
            self.kill()
            epitaph = f"{self.program} closed its connection"
            return KernelEnded(epitaph, died(epitaph))
        code = await self._ending()
        return KernelEnded(self.epitaph(code), self.last_event(code))

    def epitaph(self, code: int | None) -> str:
        """How the process ended, in words."""
        if code is None:
            return f"{self.program} ended"
        if code < 0:
            hint = " (often: not enough memory)" if code == -signal.SIGKILL else ""
            return f"{self.program} was ended by signal {-code}{hint}"
        return f"{self.program} ended with exit code {code}"

    def last_event(self, code: int | None) -> dict | None:
        """The error event for the execution during which it happened."""
        return died(self.epitaph(code))


def died(epitaph: str) -> dict:
    return events.error("KernelDied", f"{epitaph}; the context starts anew, without its variables")
