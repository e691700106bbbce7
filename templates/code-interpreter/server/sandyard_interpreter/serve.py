"""The event loop: the listener, the contexts, and their end."""

import asyncio
import os
import signal
from argparse import Namespace
from pathlib import Path

from .api import Api
from .contexts import Contexts
from .environment import SandboxEnvironment
from .fork_process import ForkProcess
from .forker import Forker
from .http_server import HttpServer
from .languages import Languages


def run(options: Namespace, process: ForkProcess, token: str | None, node_kernel: Path) -> None:
    """Serves until it receives a signal to end."""
    asyncio.run(serve(options, process, token, node_kernel))


async def serve(options: Namespace, process: ForkProcess, token: str | None, node_kernel: Path) -> None:
    contexts = Contexts(Languages(Forker(process), options.node, node_kernel), options.home)
    server = HttpServer(Api(contexts, SandboxEnvironment(options.agent, token)).answer)
    await server.listen(options.host, options.port)
    os.chdir(options.home)
    contexts.open_defaults()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    await ended.wait()
    server.close()
    contexts.close()
