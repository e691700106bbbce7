"""One execution as its client sees it: events that wait to be sent."""

import asyncio
from collections import deque

from . import events

# Events that wait to be sent. A few, so that reading continues while one is sent; a slow client then blocks the code instead of filling memory.
QUEUE_SIZE = 8


class Execution:
    """What was asked, and a short queue of what came of it."""

    def __init__(self, code: str, variables: dict[str, str], own_variables: dict[str, str]):
        self.code = code
        self.variables = variables
        self.own_variables = own_variables
        self.is_abandoned = False
        self._waiting: deque[dict] = deque()
        self._changed = asyncio.Condition()

    async def put(self, event: dict) -> None:
        """Adds an event, when there is room; does nothing when nobody wants it any more."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.is_abandoned or len(self._waiting) < QUEUE_SIZE)
            if not self.is_abandoned:
                self._waiting.append(event)
            self._changed.notify_all()

    async def next(self, seconds: float) -> dict:
        """The next event, or a sign of life when none comes in this time."""
        try:
            async with asyncio.timeout(seconds), self._changed:
                await self._changed.wait_for(lambda: self._waiting)
                self._changed.notify_all()
                return self._waiting.popleft()
        except TimeoutError:
            return events.KEEPALIVE

    async def abandon(self) -> None:
        """Says that nobody waits for the events any more."""
        self.is_abandoned = True
        async with self._changed:
            self._waiting.clear()
            self._changed.notify_all()
