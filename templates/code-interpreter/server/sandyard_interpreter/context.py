"""A context: a kernel that keeps its state from one execution to the next."""

import asyncio
import contextlib
import itertools
import uuid

from . import events
from .errors import KernelEnded, KernelFailed
from .execution import Execution
from .kernel import Kernel
from .languages import Languages

# Code may have a moment to tidy up after an interrupt; after these it is asked once more. And again after the last of them for
# as long as it runs, since an interrupt may come just when nothing hears it.
INTERRUPT_AGAIN_SECONDS = (1.0, 5.0, 10.0)


class Context:
    """Executes one piece of code at a time, in the order of asking."""

    def __init__(self, languages: Languages, language: str, cwd: str):
        self.id = str(uuid.uuid4())
        self.language = language
        self.cwd = cwd
        self._languages = languages
        self._turn = asyncio.Lock()
        self._starting = asyncio.Lock()
        self._kernel: Kernel | None = None
        self._running: Execution | None = None
        self._tasks: set[asyncio.Task] = set()
        self._is_closed = False
        # Why the kernel was taken away on purpose, while code ran in it.
        self._abort_reason = ""

    def describe(self) -> dict:
        return {"id": self.id, "language": self.language, "cwd": self.cwd}

    # --- executing

    def execute(self, execution: Execution) -> None:
        """Runs it as soon as it is its turn."""
        self._spawn(self._execute(execution))

    async def _execute(self, execution: Execution) -> None:
        try:
            async with self._turn:
                if not execution.is_abandoned:
                    await self._run(execution)
        finally:
            await execution.put(events.END)

    async def _run(self, execution: Execution) -> None:
        self._abort_reason = ""
        try:
            kernel = await self.open()
            self._running = execution
            if execution.is_abandoned:
                return
            answers = kernel.run(execution.code, execution.variables, execution.own_variables)
            async with contextlib.aclosing(answers):
                async for event in answers:
                    await execution.put(event)
        except KernelEnded as end:
            event = events.error("KernelDied", self._abort_reason) if self._abort_reason else end.event
            if event:
                await execution.put(event)
        except KernelFailed as failure:
            await execution.put(events.error("KernelFailed", str(failure)))
        finally:
            self._running = None
            self._drop_if_gone()
        if self.language == "python" and not self._kernel and not self._is_closed:
            # The next execution need not wait for what can be done now.
            self._spawn(self._open_ahead())

    def abandon(self, execution: Execution) -> None:
        """The client is gone: whatever still runs for it is interrupted, and what follows waits until it has stopped."""
        self._spawn(self._stop(execution))

    async def _stop(self, execution: Execution) -> None:
        await execution.abandon()
        for seconds in itertools.chain((0.0,), INTERRUPT_AGAIN_SECONDS, itertools.repeat(INTERRUPT_AGAIN_SECONDS[-1])):
            await asyncio.sleep(seconds)
            if self._running is not execution or not self._kernel:
                return
            self._kernel.interrupt()

    # --- its kernel

    async def open(self) -> Kernel:
        """The kernel, started if need be."""
        async with self._starting:
            if self._is_closed:
                raise KernelFailed("the context was removed")
            self._drop_if_gone()
            if not self._kernel:
                kernel = await self._languages.open(self.language, self.cwd)
                if self._is_closed:
                    kernel.close()
                    raise KernelFailed("the context was removed")
                self._kernel = kernel
            return self._kernel

    async def _open_ahead(self) -> None:
        # The next execution reports why it does not work.
        with contextlib.suppress(KernelFailed):
            await self.open()

    def open_ahead(self) -> None:
        """Starts the kernel before anybody asks."""
        self._spawn(self._open_ahead())

    async def restart(self) -> None:
        """A new kernel; what runs in the old one ends."""
        self._abort_reason = "the context was restarted"
        if self._kernel:
            self._kernel.kill()
        async with self._turn:
            self._drop_if_gone()
            await self.open()

    def close(self) -> None:
        """Ends the kernel for good."""
        self._is_closed = True
        self._abort_reason = "the context was removed"
        if not self._kernel:
            return
        self._kernel.kill()
        # The running execution still reads from it and drops it.
        if not self._running:
            self._drop_if_gone()

    def _drop_if_gone(self) -> None:
        if self._kernel and self._kernel.is_gone:
            self._kernel.close()
            self._kernel = None

    def _spawn(self, work) -> None:
        # The event loop itself holds tasks only weakly.
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
