"""An event loop beside the tests, for clients that are asynchronous."""

import asyncio
import threading

# For streams that say goodbye on a busy machine.
_TIMEOUT = 60


class LoopThread:
    """An event loop in a thread of its own, as in a program: callbacks and streams go on while a test does other things."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def close(self):
        """Cancels what still runs, ends the loop and waits for its thread."""

        async def cancel_all():
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(cancel_all(), self.loop).result(_TIMEOUT)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(_TIMEOUT)
        self.loop.close()
