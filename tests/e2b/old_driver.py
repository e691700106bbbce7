"""What every generation of the SDK can do, run by the Python of its own environment.

The variables point it at the server. Prints one line of JSON with what it saw.
"""

import asyncio
import inspect
import json

from e2b import AsyncSandbox, Sandbox


async def maybe(value):
    """Both halves are driven by the same lines."""
    return await value if inspect.isawaitable(value) else value


async def drive(kind):
    """The life of one sandbox."""
    seen = {}
    sandbox = await maybe(kind.create(timeout=600, metadata={"by": "old"}, envs={"GIVEN": "value"}))
    seen["run"] = (await maybe(sandbox.commands.run("echo $GIVEN"))).stdout
    await maybe(sandbox.files.write("a.txt", "written"))
    seen["read"] = await maybe(sandbox.files.read("a.txt"))
    seen["listed"] = [entry.name for entry in await maybe(sandbox.files.list("/home/user")) if entry.name == "a.txt"]
    repeated = await maybe(kind.connect(sandbox.sandbox_id))
    seen["connected"] = await maybe(repeated.files.read("a.txt"))
    handle = await maybe(repeated.commands.run("echo background", background=True))
    seen["background"] = (await maybe(handle.wait())).stdout
    seen["pages"] = sandbox.sandbox_id in [one.sandbox_id for one in await maybe(kind.list().next_items())]
    await maybe(sandbox.set_timeout(900))
    seen["metadata"] = (await maybe(sandbox.get_info())).metadata
    await maybe(sandbox.beta_pause())
    resumed = await maybe(kind.connect(sandbox.sandbox_id))
    seen["resumed"] = await maybe(resumed.files.read("a.txt"))
    seen["running"] = await maybe(resumed.is_running())
    seen["killed"] = await maybe(resumed.kill())
    seen["gone"] = not await maybe(resumed.is_running())
    return seen


print(json.dumps({"sync": asyncio.run(drive(Sandbox)), "async": asyncio.run(drive(AsyncSandbox))}))
