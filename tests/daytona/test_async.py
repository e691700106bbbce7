"""The asynchronous half of the official SDK, where it goes ways of its own."""

import asyncio

from daytona import CreateSandboxFromSnapshotParams, FileUpload, ListSandboxesQuery, SandboxState, SessionExecuteRequest
from running import TIMEOUT
from waiting import wait_until


async def shows(sandbox, state):
    """News of a state that was may come late; what follows it is the last word."""

    async def is_shown():
        return sandbox.state == state

    await wait_until(is_shown, lambda: f"{state} is shown; it is {sandbox.state}")


async def test_a_life(async_daytona):
    sandbox = await async_daytona.create(CreateSandboxFromSnapshotParams(labels={"half": "async"}))
    await shows(sandbox, SandboxState.STARTED)
    assert (await sandbox.process.exec("id -un")).result == "daytona\n"
    found = [found.id async for found in async_daytona.list(ListSandboxesQuery(labels={"half": "async"}, limit=1))]
    assert found == [sandbox.id]
    await sandbox.stop()
    await sandbox.start()
    await shows(sandbox, SandboxState.STARTED)
    await async_daytona.delete(sandbox, wait=True)
    await shows(sandbox, SandboxState.DESTROYED)


async def test_many_at_once(async_daytona):
    sandboxes = await asyncio.gather(*(async_daytona.create(timeout=TIMEOUT) for _ in range(8)))
    results = await asyncio.gather(*(sandbox.process.exec("echo $((6 * 7))") for sandbox in sandboxes))
    assert [done.result for done in results] == ["42\n"] * 8
    await asyncio.gather(*(async_daytona.delete(sandbox) for sandbox in sandboxes))


async def test_files_and_sessions(async_daytona):
    sandbox = await async_daytona.create()
    await sandbox.fs.upload_files([FileUpload(b"one", "a/one"), FileUpload(b"two" * 100_000, "a/two")])
    assert await sandbox.fs.download_file("a/two") == b"two" * 100_000
    assert {entry.name for entry in await sandbox.fs.list_files("a")} == {"one", "two"}
    await sandbox.process.create_session("s")
    request = SessionExecuteRequest(command="for word in a b c; do echo $word; done; echo e >&2", run_async=True)
    started = await sandbox.process.execute_session_command("s", request)
    out, bad = [], []
    await sandbox.process.get_session_command_logs_async("s", started.cmd_id, out.append, bad.append)
    assert ("".join(out), "".join(bad)) == ("a\nb\nc\n", "e\n")
    await async_daytona.delete(sandbox)
