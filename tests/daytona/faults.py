"""Failures on demand: what a cloud does on a bad day."""

import asyncio

from aiohttp import web

from errors import Problem

# What the proxy of previews is called in faults; everything else is called as its operation.
PREVIEW = "preview"


class Faults:
    """Faults in the order they were asked for; each is used up by the requests it meets."""

    def __init__(self):
        self._request_log = []

    def ask(self, fault):
        """`count` requests (of operation `match`, or of the proxy: `preview`) meet it.

        `status` is answered with `retry_after`; or `kind` is one of `hang` (nothing is ever answered), `reset` (the
        connection is cut before anything is done), `lost` (it is done, then the connection is cut), `half` (the answer
        breaks off), `garbage` (an answer that is not JSON), `slow` (an answer that comes byte by byte, `pause` seconds each).
        """
        self._request_log.append({"count": 1, **fault})

    def clear(self):
        self._request_log.clear()

    def meet(self, operation):
        for fault in self._request_log:
            if fault["count"] > 0 and fault.get("match") in (None, operation):
                fault["count"] -= 1
                return fault
        return None


async def before(fault, transport):
    """What strikes before anything is done."""
    kind = fault.get("kind")
    if kind is None:
        raise Problem(fault.get("status", 500), "a fault that was asked for", retry_after=fault.get("retry_after"))
    if kind == "hang":
        await asyncio.Event().wait()
    if kind == "reset":
        cut(transport)


def cut(transport):
    """Ends a connection without a farewell."""
    transport.abort()
    raise ConnectionResetError("a fault that was asked for")


async def strike(fault, request, proceed):
    """Answers a request as the fault has it. `proceed` does the work, for faults that strike afterwards."""
    await before(fault, request.transport)
    kind = fault["kind"]
    if kind == "garbage":
        return web.Response(text="<html>not what you asked for</html>", content_type="application/json")
    done = await proceed()
    if not isinstance(done, web.Response):
        return done
    if kind == "lost":
        cut(request.transport)
    whole = done.body if isinstance(done.body, bytes) else b""
    answer = web.StreamResponse(status=done.status, headers={"Content-Type": "application/json"})
    answer.content_length = len(whole)
    await answer.prepare(request)
    if kind == "half":
        await answer.write(whole[: len(whole) // 2])
        cut(request.transport)
    for at in range(len(whole)):
        await answer.write(whole[at : at + 1])
        await asyncio.sleep(fault.get("pause", 0.01))
    return answer
