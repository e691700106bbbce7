"""The provider that a suite runs with, and the actual instances behind a server."""

import docker_labels
import server as servers
from dockerd import IMAGE, Dockerd
from waiting import wait_for


# The name of the one this run is with, see provider_option.py.
chosen = "embedded"


class Embedded:
    """The engine of this host, as every server has it."""

    name = "embedded"

    def instances(self, server):
        """All instances, with the host's id of each first process."""
        found = server.data.instances()
        return [{"id": one["id"], "state": one["state"], "pid": (one["init"] or {}).get("pid")} for one in found]


class Docker:
    """A daemon of the tests; while this is entered, every server that is started uses it."""

    name = "docker"

    def __init__(self):
        self.dockerd = Dockerd()

    def instances(self, server):
        found = []
        for one in docker_labels.sandboxes(self.dockerd.api):
            state = self.dockerd.api.container(one["Id"])["State"]
            found.append({"id": docker_labels.instance_id(one), "state": state["Status"], "pid": state["Pid"]})
        return found

    def __enter__(self):
        self.dockerd.__enter__()
        servers.everywhere.update(docker_variables(self.dockerd.host))
        return self

    def __exit__(self, *error):
        servers.everywhere.clear()
        try:
            # Whatever tests made is gone by now, also behind the server's back.
            if error[0] is None:
                remains = self.dockerd.api.remains
                wait_for(lambda: not any(remains().values()), lambda: f"nothing is left behind: {remains()}")
        finally:
            self.dockerd.__exit__(*error)


def docker_variables(host, **more):
    """Settings of a server that creates containers. Nothing is fetched from a registry."""
    own = {"SANDBOX_PROVIDER": "docker", "DOCKER_HOST": host, "DOCKER_IMAGE": IMAGE, "SANDYARD_DOCKER_PULL": "never"}
    return {**own, **more}
