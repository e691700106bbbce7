"""How containers of the Docker provider are known."""

# On every container that is a sandbox.
MARK = "sandyard.sandbox"
# On everything, whose it is.
INSTALLATION = "sandyard.installation"
# On a container, its volume for /workspace; on that volume, the container.
WORKSPACE = "sandyard.workspace"
# How the name of a volume with the agent's program begins, and that of the container that holds it.
AGENT = "sandyard-agent-"
# The same for one that is being filled.
FILL = "sandyard-fill-"


def sandboxes(api):
    """The containers that are sandboxes."""
    return [one for one in api.containers() if one["Labels"].get(MARK)]


def instance_id(container):
    """What the server calls `provider_sandbox_id`."""
    return container["Id"]
