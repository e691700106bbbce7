"""The kernel: takes requests from its socket and executes them with ipykernel."""

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
import warnings
from types import SimpleNamespace

from .lean import without

# A debugger and a completer that nobody can reach, and that take longer to import than everything else.
with without("debugpy", "jedi"):
    import ipykernel.debugger  # noqa: F401
    from ipykernel.ipkernel import IPythonKernel
    from ipykernel.zmqshell import ZMQInteractiveShell
from IPython.core.interactiveshell import InteractiveShell
from jupyter_client.session import Session
from tornado.ioloop import IOLoop
from traitlets.config import Config

from . import displays
from .variables import Variables
from .wire import Marks, Wire, redirect_streams

CONFIG = Config()
# One line per cell in a database helps nobody here, and costs every start.
CONFIG.HistoryManager.enabled = False
CONFIG.HistoryAccessor.enabled = False
# Read by programs, not on a terminal.
CONFIG.InteractiveShell.colors = "nocolor"
CONFIG.InteractiveShell.xmode = "Context"


def run(cwd: str, word: bytes, control: int, stdout: int, stderr: int) -> None:
    """Becomes a kernel. Never returns."""
    os.setsid()
    signal.signal(signal.SIGINT, ignore)
    os.chdir(cwd)
    os.environ["PWD"] = cwd
    # Figures become results.
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    # IPython's advice about `sys.exit` is for interactive users.
    warnings.filterwarnings("ignore", message="To exit: use")
    wire = Wire(socket.socket(fileno=control), Marks(word, stdout, stderr))
    redirect_streams(stdout, stderr)
    asyncio.run(serve(wire))
    leave(0)


async def serve(wire: Wire) -> None:
    wake_on_signals()
    kernel = SocketKernel(wire)
    while (request := await wire.receive()) is not None:
        await kernel.answer(request)


def wake_on_signals() -> None:
    """Lets the event loop look around after a signal: ipykernel's handler only leaves a note for it."""
    awake, wake = socket.socketpair()
    for end in (awake, wake):
        end.setblocking(False)
    signal.set_wakeup_fd(wake.detach(), warn_on_full_buffer=False)
    asyncio.get_running_loop().add_reader(awake, awake.recv, 4096)


def ignore(*_) -> None:
    """An interrupt that comes when nothing runs. A function, because children would inherit `SIG_IGN`."""


def leave(code: int) -> None:
    """Ends the process without the clean-up of the one it was forked from."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


class SocketSession(Session):
    """Sends what ipykernel publishes to our socket instead of ZeroMQ's."""

    wire: Wire
    # Whether the failure of the running code has been reported.
    has_failed = False

    def send(self, stream, msg_or_type, content=None, parent=None, **_):
        is_message = isinstance(msg_or_type, dict)
        kind = msg_or_type["msg_type"] if is_message else msg_or_type
        if answer := displays.answer(kind, msg_or_type["content"] if is_message else content):
            self.has_failed = self.has_failed or kind == "error"
            self.wire.answer(answer)


class Shell(ZMQInteractiveShell):
    """The interactive shell, without what only a terminal or a notebook has."""

    # `!command` prints to the same pipes as everything else; no terminal is put between.
    system = InteractiveShell.system_raw

    def init_history(self):
        super().init_history()
        self.history_manager.enabled = False


class SocketKernel(IPythonKernel):
    """ipykernel's kernel with our socket before it."""

    shell_class = Shell

    def __init__(self, wire: Wire):
        session = SocketSession()
        session.wire = wire
        # ipykernel asks which thread is the shell's: there is only this one.
        thread = SimpleNamespace(parent_thread=threading.current_thread())
        log = logging.getLogger(__name__)
        super().__init__(config=CONFIG, log=log, session=session, iopub_socket=object(), shell_channel_thread=thread)
        self.io_loop = IOLoop.current()
        self._wire = wire
        self._variables = Variables()
        self._pid = os.getpid()
        displays.install(self.shell)

    async def answer(self, request: dict) -> None:
        """Executes code; answers `done` when everything it printed and showed has been handed over."""
        with self._variables.during(request["set"], request["own"]):
            try:
                self.session.has_failed = False
                signal.signal(signal.SIGINT, self._wire.interrupt)
                self._wire.send({"type": "started"})
                reply = await self.do_execute(request["code"], silent=False, store_history=True, allow_stdin=False)
                self._finish(reply)
            except (KeyboardInterrupt, asyncio.CancelledError):
                # Another would end the kernel: nothing of the code is left to be stopped.
                signal.signal(signal.SIGINT, ignore)
                self._wire.answer(displays.interrupted())
            finally:
                signal.signal(signal.SIGINT, ignore)
        if os.getpid() != self._pid:
            # A child that the code forked and let run on: it is not the kernel.
            leave(0)
        sys.stdout.flush()
        sys.stderr.flush()
        exits = bool(self.shell.exit_now)
        self._wire.send({"type": "done", "exits": exits})
        if exits:
            leave(0)

    def _finish(self, reply: dict) -> None:
        """Tells what ipykernel only says in its reply."""
        # Help such as that for `len?`, which IPython would show in a pager.
        for payload in reply.get("payload", ()):
            if payload.get("source") == "page":
                print(payload["data"].get("text/plain", ""))
        # Errors that IPython prints instead of raising, such as the wrong use of a magic command.
        if reply["status"] == "error" and not self.session.has_failed:
            self._wire.answer(displays.error(reply["ename"], reply["evalue"], "\n".join(reply["traceback"])))
