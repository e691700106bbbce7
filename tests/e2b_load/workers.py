"""Fifty users of the asynchronous SDK at once, each with a sandbox of its own, doing all that the SDK offers in no
particular order. Whatever the SDK raises that it was not told to expect is kept and shown.
"""

import asyncio
import random
import secrets
from collections import Counter

from e2b import AsyncSandbox, CommandExitException, SandboxNotFoundException

# How long one step may take before it counts as stuck. Generous: two cores carry fifty users, five other suites
# and compilers.
TIMEOUT = 240

# Seconds a sandbox lives; none gets that old.
LIFE = 3000
# The longest time a user thinks before doing something else. Without it the processors would do nothing but this for minutes.
THINK = 6


class Worker:
    """One user: makes a sandbox, works in it, kills it, and starts again until time is up."""

    def __init__(self, number, seed, options):
        self.number, self.options = number, {**options, "request_timeout": TIMEOUT}
        self.random = random.Random(f"{seed}-{number}")
        self.steps, self.errors = Counter(), []
        self.created = []

    async def run(self, is_over):
        while not is_over() and not self.errors:
            try:
                await self.live_once(is_over)
            except Exception as error:  # Told at the end, with what was being done.
                self.errors.append(f"user {self.number}: {type(error).__name__}: {error}"[:500])

    async def live_once(self, is_over):
        sandbox = await self.step("create", AsyncSandbox.create(timeout=LIFE, metadata=self.tag(), **self.options))
        self.created.append(sandbox.sandbox_id)
        try:
            actions = [self.run_command, self.write, self.watch, self.pause, self.fail, self.background]
            for _ in range(self.random.randint(3, 10)):
                if is_over():
                    break
                await self.random.choice(actions)(sandbox)
                await asyncio.sleep(self.random.uniform(0, THINK))
        finally:
            killed = await self.step("kill", sandbox.kill())
        assert killed, "a sandbox that was there could not be killed"
        await self.wait_until_removed(sandbox)

    def tag(self):
        return {"user": str(self.number)}

    async def step(self, name, work):
        result = await asyncio.wait_for(work, TIMEOUT)
        self.steps[name] += 1
        return result

    # --- what it does

    async def run_command(self, sandbox):
        word = secrets.token_hex(8)
        done = await self.step("run", sandbox.commands.run(f"echo {word}; echo {word} >&2", timeout=TIMEOUT))
        assert (done.stdout, done.stderr, done.exit_code) == (f"{word}\n", f"{word}\n", 0), done

    async def fail(self, sandbox):
        try:
            await self.step("fail", sandbox.commands.run("exit 7", timeout=TIMEOUT))
        except CommandExitException as error:
            assert error.exit_code == 7, error
            self.steps["fail"] += 1
            return
        raise AssertionError("`exit 7` raised nothing")

    async def background(self, sandbox):
        handle = await self.step("background", sandbox.commands.run("sleep 0.05; echo done", background=True, timeout=TIMEOUT))
        done = await self.step("wait", handle.wait())
        assert done.stdout == "done\n", done

    async def write(self, sandbox):
        path, content = f"/home/user/{secrets.token_hex(4)}", secrets.token_hex(5000)
        await self.step("write", sandbox.files.write(path, content))
        assert await self.step("read", sandbox.files.read(path)) == content

    async def watch(self, sandbox):
        folder = f"/home/user/watched-{secrets.token_hex(4)}"
        await self.step("make_dir", sandbox.files.make_dir(folder))
        seen = asyncio.Event()
        handle = await self.step("watch", sandbox.files.watch_dir(folder, on_event=lambda _: seen.set(), timeout=TIMEOUT))
        await self.step("write", sandbox.files.write(f"{folder}/news", "news"))
        await self.step("event", seen.wait())
        await self.step("unwatch", handle.stop())

    async def pause(self, sandbox):
        await self.step("pause", sandbox.pause())
        await self.step("connect", sandbox.connect(timeout=LIFE))
        await self.run_command(sandbox)

    async def wait_until_removed(self, sandbox):
        try:
            await self.step("ask", sandbox.get_info())
        except SandboxNotFoundException:
            self.steps["gone"] += 1
            return
        raise AssertionError("a killed sandbox is still there")
