"""What every fault has: a server it strikes, a moment, and an end."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx

from cell import Cell
from server import Server
from waiting import wait_for


class Fault:
    """A fault with a server of its own. `inject` breaks something, `heal` ends that as the world would: nobody touches the server.

    `cause` is what health must name while it lasts, where health can know it.
    """

    cause = None

    def __init__(self):
        self._stack = ExitStack()

    def __enter__(self):
        with ExitStack() as stack:
            self.server = self.set_up(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *problem):
        return self._stack.__exit__(*problem)

    def set_up(self, stack):
        return stack.enter_context(self.make_server())

    def make_server(self, **options):
        settings = {"LIMITS_SANDBOXES_PER_USER": 0, "LIFECYCLE_ORPHAN_GRACE": 2, **options}
        return Server("--ready", "1", **settings)

    def cell(self):
        return Cell(self.server)

    def inject(self, verb):
        raise NotImplementedError

    def heal(self, verb):
        raise NotImplementedError

    def strike(self, verb):
        """Does the verb under the fault; returns the answer, or none where the connection was lost."""
        self.inject(verb)
        try:
            # At the same time: each may wait for what is broken as long as it is patient.
            with ThreadPoolExecutor(1) as pool:
                reply = pool.submit(ask, verb, self.server)
                if self.cause:
                    self.check_health(verb)
                return reply.result()
        finally:
            self.heal(verb)

    def check_health(self, verb):
        by_name = re.compile(self.cause)
        health = verb.cell.health
        wait_for(lambda: by_name.search(str(health())), lambda: f"health names /{self.cause}/: {health()}", 60)


class Moment(Fault):
    """A fault that comes at a moment of the verb, and is over at once. Each verb is done once for each moment."""

    # From before the request is read to after most answers, in seconds.
    moments = (0.0, 0.004, 0.015, 0.06)

    def strike_at(self, verb, delay):
        """Does the verb with the fault `delay` seconds after it began."""
        reply = []
        worker = threading.Thread(target=lambda: reply.append(ask(verb, self.server)))
        worker.start()
        worker.join(delay)
        self.inject(verb)
        self.heal(verb)
        worker.join()
        return reply[0]


def ask(verb, server):
    """The answer to a verb, none if the connection was lost. It must come: what hangs is a defect."""
    api = server.api()
    api.http.timeout = httpx.Timeout(150)
    try:
        return verb.act(api)
    except httpx.TimeoutException as error:
        raise AssertionError(f"no answer within 150 s: {error!r}") from error
    except httpx.TransportError:
        return None
    finally:
        api.close()
