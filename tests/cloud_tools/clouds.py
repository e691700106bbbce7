"""Stand-ins for the two clouds, and the settings of a server that uses them.

Behind both is a second Sandyard, which has tool servers of its own, on port 6060. The server that is tested has its on another
port, which to them is one like any other, as every port is to the real clouds: so nothing of theirs can answer in its place.
"""

import os
from contextlib import contextmanager

from running import Counterpart
from server import Server


# Where the server that is tested has its tool servers.
TOOLS_PORT = 7060


@contextmanager
def e2b():
    with Server("--ready", "0") as cloud:
        yield {"E2B_API_KEY": cloud.admin_key, "E2B_API_URL": cloud.e2b_url, "E2B_SANDBOX_URL": cloud.e2b_url}


@contextmanager
def daytona():
    with Counterpart(python=os.environ["DAYTONA_PYTHON"]) as cloud:
        yield {"DAYTONA_API_KEY": cloud.key, "DAYTONA_SERVER_URL": cloud.api_url}


CLOUDS = {"e2b": e2b, "daytona": daytona}
