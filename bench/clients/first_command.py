"""From nothing to the first command's output, through a Python SDK: prints the milliseconds each sandbox took.

    first_command.py e2b COUNT [--at-once]      the official E2B SDK, its variables say where the server is
    first_command.py docker COUNT [--at-once]   Docker's own SDK; DOCKER_HOST and IMAGE say where and what

The last line of the output is JSON: {"millis": [...], "failures": [...]}. What a sandbox took is counted from before its
create until the output of `echo` is there; taking it away again is not counted. At once, all creates begin together.
"""

import argparse
import asyncio
import json
import os
import time


class E2b:
    """The asynchronous classes: one program, many sandboxes, as an agent server would use them."""

    def __init__(self):
        from e2b import AsyncSandbox

        self._sandboxes = AsyncSandbox

    async def create(self):
        return await self._sandboxes.create(timeout=300)

    async def run(self, sandbox):
        return (await sandbox.commands.run("echo ok")).stdout

    async def delete(self, sandbox):
        await sandbox.kill()


class Docker:
    """Docker's SDK knows no asyncio, so each container has a thread."""

    def __init__(self):
        import docker

        self._client = docker.from_env(max_pool_size=100)
        self._image = os.environ["IMAGE"]

    async def create(self):
        return await asyncio.to_thread(
            self._client.containers.run, self._image, ["sleep", "infinity"], detach=True, network_mode="none"
        )

    async def run(self, container):
        done = await asyncio.to_thread(container.exec_run, ["/bin/bash", "-l", "-c", "echo ok"])
        return done.output.decode()

    async def delete(self, container):
        await asyncio.to_thread(container.remove, force=True)


async def measure(subject, failures):
    """The milliseconds one sandbox took; none when it failed."""
    begin = time.perf_counter()
    sandbox = None
    try:
        sandbox = await subject.create()
        output = await subject.run(sandbox)
        millis = (time.perf_counter() - begin) * 1e3
        assert output == "ok\n", f"`echo ok` wrote {output!r}"
        return sandbox, millis
    except Exception as error:  # Whatever it was, it counts as a failure and is told.
        failures.append(f"{type(error).__name__}: {error}"[:300])
        return sandbox, None


async def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("subject", choices=["e2b", "docker"])
    arguments.add_argument("count", type=int)
    arguments.add_argument("--at-once", action="store_true")
    options = arguments.parse_args()
    subject = {"e2b": E2b, "docker": Docker}[options.subject]()
    failures, measured = [], []
    # Connections open and modules load with the first one, which is not counted.
    warm, _ = await measure(subject, failures)
    if warm is not None:
        await subject.delete(warm)
    failures.clear()
    if options.at_once:
        measured = await asyncio.gather(*(measure(subject, failures) for _ in range(asked.count)))
        remaining = [sandbox for sandbox, _ in measured if sandbox is not None]
        await asyncio.gather(*(subject.delete(sandbox) for sandbox in remaining))
    else:
        for _ in range(asked.count):
            sandbox, millis = await measure(subject, failures)
            if sandbox is not None:
                await subject.delete(sandbox)
            measured.append((sandbox, millis))
    millis = [millis for _, millis in measured if millis is not None]
    print(json.dumps({"millis": millis, "failures": failures}))


asyncio.run(main())
