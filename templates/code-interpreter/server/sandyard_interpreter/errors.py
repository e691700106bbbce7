"""Errors that are returned to clients."""


class Refused(Exception):
    """An answer other than success: a status and a sentence for the caller."""

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status
        self.message = message


class KernelFailed(Exception):
    """A language's process could not be started, or is gone. The text says why, for the person who ran the code."""


class KernelEnded(KernelFailed):
    """The process ended while code ran in it. `event` is what the client is told; none when the code wanted it so."""

    def __init__(self, text: str, event: dict | None):
        super().__init__(text)
        self.event = event
