"""Processes that are killed, each at several moments of a verb."""

import os
import signal

from fault import Moment
from waiting import wait_for


class ServerKilled(Moment):
    def inject(self, verb):
        self.server.kill()

    def heal(self, verb):
        self.server.start()


class LauncherKilled(Moment):
    def inject(self, verb):
        for pid in self.server.data.launchers():
            kill(pid)

    def heal(self, verb):
        """The next request that needs a launcher starts one."""


class AgentKilled(Moment):
    """The first process of the sandbox, and with it all that runs inside."""

    def inject(self, verb):
        instance = verb.cell.provider_id(verb.sandbox)
        for one in self.server.data.instances():
            if one["id"] == instance and one["init"]:
                kill(one["init"]["pid"])

    def heal(self, verb):
        if not verb.is_deleting:
            wait_for(lambda: verb.api.get("/health").status_code == 200, "the server answers")


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
