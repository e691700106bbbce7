"""What is behind a sandbox: its container and its volumes, as Docker tells of them."""

import json

import docker_labels


class Behind:
    """The daemon behind one server."""

    def __init__(self, api, docker):
        self.api, self.docker = api, docker

    def container(self, sandbox):
        """`docker inspect` of a sandbox's container."""
        return self.docker.container(self.api.info(sandbox)["provider_sandbox_id"])

    def state(self, sandbox):
        return self.container(sandbox)["State"]["Status"]

    def volumes(self, sandbox):
        """The names of the volumes that are its own; the one with the agent's program is everybody's."""
        mounts = self.container(sandbox)["Mounts"]
        return [one["Name"] for one in mounts if one["Type"] == "volume" and one["Name"] in self.docker.volumes()]

    def text(self, sandbox):
        """Everything Docker would tell anybody about it: the container, its image and its volumes."""
        container = self.container(sandbox)
        volumes = [self.docker.call("GET", f"/volumes/{name}") for name in self.volumes(sandbox)]
        return json.dumps([container, volumes])

    def sandboxes(self):
        """The ids of all containers that are sandboxes."""
        return {one["Id"] for one in docker_labels.sandboxes(self.docker)}
