"""The fork server's process. Imports next to nothing: it is started before everything else."""

import socket
import subprocess


class ForkProcess:
    """The process, and the socket it is asked over."""

    def __init__(self, command: list[str]):
        self._command = command
        self.start()

    def start(self) -> None:
        self.socket, child_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.setblocking(False)
        with child_end:
            position = child_end.fileno()
            self._process = subprocess.Popen([*self._command, str(position)], pass_fds=[position], stdin=subprocess.DEVNULL)

    def stop(self) -> None:
        """Ends it; kernels that it made go on."""
        self.socket.close()
        self._process.terminate()
        self._process.wait()
