"""Kernels that are ordinary child processes: node and bash."""

import asyncio
import contextlib
import subprocess

from .channel import Channel
from .errors import KernelFailed

# A process that has closed its socket ends at once, unless the machine is busy.
ENDING_SECONDS = 30.0


def spawn(program: str, command: list[str], cwd: str, channel: Channel, **streams) -> subprocess.Popen:
    """Starts a kernel in a session of its own, so that it can be interrupted together with its children."""
    ends = channel.kernel_ends
    options = {"stdin": subprocess.DEVNULL, "stdout": ends.stdout, "stderr": ends.stderr, **streams}
    try:
        return subprocess.Popen(command, cwd=cwd, start_new_session=True, **options)
    except OSError as error:
        ends.close()
        channel.close()
        raise KernelFailed(f"{program} cannot be started: {error.strerror}") from None


async def ending_of(process: subprocess.Popen) -> int | None:
    """The exit code of a process that has ended or is about to."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(ENDING_SECONDS):
            while process.poll() is None:
                await asyncio.sleep(0.01)
    return process.poll()
