"""What every generation of the SDK can do, run by the Python of its own environment: `python old_driver.py [--by-url]`.

The variables point it at the server. Prints one line of JSON with what it saw. By URL, 2.8 does not say which sandbox it means
once it has connected to one, so there the object of the create goes on.
"""

import asyncio
import inspect
import json
import sys

from e2b import AsyncSandbox, Sandbox


async def maybe(value):
    """Both halves are driven by the same lines."""
    return await value if inspect.isawaitable(value) else value


async def connect(kind, sandbox):
    """The sandbox connected to."""
    connected = await maybe(kind.connect(sandbox.sandbox_id))
    return sandbox if "--by-url" in sys.argv else connected


async def drive(kind):
    """The life of one sandbox."""
    seen = {}
    sandbox = await maybe(kind.create(timeout=60, metadata={"by": "old"}, envs={"GIVEN": "value"}))
    seen["run"] = (await maybe(sandbox.commands.run("echo $GIVEN"))).stdout
    await maybe(sandbox.files.write("a.txt", "written"))
    seen["read"] = await maybe(sandbox.files.read("a.txt"))
    seen["listed"] = [entry.name for entry in await maybe(sandbox.files.list("/home/user")) if entry.name == "a.txt"]
    again = await connect(kind, sandbox)
    seen["connected"] = await maybe(again.files.read("a.txt"))
    handle = await maybe(again.commands.run("echo background", background=True))
    seen["background"] = (await maybe(handle.wait())).stdout
    seen["pages"] = sandbox.sandbox_id in [one.sandbox_id for one in await maybe(kind.list().next_items())]
    await maybe(sandbox.set_timeout(120))
    seen["metadata"] = (await maybe(sandbox.get_info())).metadata
    await maybe(sandbox.beta_pause())
    resumed = await connect(kind, sandbox)
    seen["resumed"] = await maybe(resumed.files.read("a.txt"))
    seen["running"] = await maybe(resumed.is_running())
    seen["killed"] = await maybe(resumed.kill())
    seen["gone"] = not await maybe(resumed.is_running())
    return seen


print(json.dumps({"sync": asyncio.run(drive(Sandbox)), "async": asyncio.run(drive(AsyncSandbox))}))
