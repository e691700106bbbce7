"""A sandbox's tools through the server's own: progress comes through, and a call that is cancelled ends inside."""

import asyncio

import pytest

from client import Hearer, text
from waiting import wait_until


async def until(condition):
    await wait_until(lambda: asyncio.to_thread(condition), "what was done is seen inside")


def ask(sandbox, tool, **arguments):
    return "sandbox_call_tool", {"sandbox_id": sandbox, "tool": tool, "arguments": arguments}


def test_progress_of_the_inner_call_comes_through(control, api, fresh):
    hearer = Hearer(api, fresh)

    async def use():
        async with control.session() as session:
            call = ask(fresh, "Bash", session_name="progress", command=hearer.command, timeout=180)
            return await session.call_tool(*call, progress_callback=hearer.note)

    result, outcome = asyncio.run(use()), hearer.outcome
    assert "step 4" in text(result)
    assert outcome and [step for step, _ in outcome] == sorted({step for step, _ in outcome}), outcome
    assert any("step" in (message or "") for _, message in outcome), outcome


@pytest.mark.parametrize("has_progress", [False, True])
def test_a_cancelled_call_ends_what_it_started_inside(control, api, fresh, has_progress):
    def is_running():
        return api.run(fresh, "pgrep -f '[s]leep 98766' || true")["stdout"].strip() != ""

    async def ignore(*_):
        pass

    async def use():
        async with control.session() as session:
            arguments = ask(fresh, "Bash", session_name="cancelled", command="sleep 98766")
            options = {"progress_callback": ignore} if has_progress else {}
            call = asyncio.create_task(session.call_tool(*arguments, **options))
            await until(is_running)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await until(lambda: not is_running())
            # The session of the client is as good as before.
            return await session.call_tool(*ask(fresh, "run_command", command="echo still here"))

    assert "still here" in text(asyncio.run(use()))
