"""A paused sandbox wakes once, for any number and kind of concurrent requests."""

import asyncio
import time

import httpx
from websockets.asyncio.client import connect

from pauses import pauses
from previews import Preview, start_site
from waiting import wait_for

AT_ONCE = 100
# Nothing is measured by it.
TIMEOUT = 240


async def wake_concurrently(server, sandbox):
    """A hundred requests of every kind at the same time; returns what went wrong."""
    limits = httpx.Limits(max_connections=AT_ONCE)
    async with httpx.AsyncClient(base_url=server.url, timeout=TIMEOUT, trust_env=False, limits=limits) as client:
        by_name = {"sandbox_id": sandbox}
        host = Preview(server, sandbox, "port-first")

        async def ask(*request, **options):
            until = time.monotonic() + TIMEOUT
            while True:
                status = (await client.request(*request, **options)).status_code
                # The agent is given some time only; a hundred at once may take longer on a busy machine.
                if status != 408 or time.monotonic() > until:
                    return status

        async def post(route, **body):
            return await ask("POST", route, json={**by_name, **body})

        async def get(route, **options):
            return await ask("GET", route, **options)

        async def websocket():
            options = {"host": "127.0.0.1", "port": server.port, "proxy": None, "ping_interval": None, "open_timeout": TIMEOUT}
            async with connect(f"{host.websocket_url}/ws", **options) as socket:
                await socket.send("x")
                return 200 if await socket.recv() == "x" else 0

        kinds = [
            lambda: post("/sandboxes/run-command", command="true"),
            lambda: post("/sandboxes/read-file", path="/etc/hostname"),
            lambda: post("/sandboxes/write-file", path="/tmp/w", content="w"),
            lambda: post("/sandboxes/connect"),
            lambda: post("/sandboxes/download-file", file_path="/etc/hostname", format="bytes"),
            lambda: post("/sandboxes/run-cmd", command="true", background=True),
            lambda: post(f"/api/sandboxes/{sandbox}/start"),
            lambda: post(f"/sandboxes/{sandbox}/resume"),
            lambda: get(f"/sandboxes/{sandbox}/files", params={"path": "/etc/hostname"}),
            lambda: get(f"/p/{sandbox}/3000/"),
            lambda: get(host.base + "/", headers=host.headers),
            websocket,
        ]
        jobs = [kinds[number % len(kinds)]() for number in range(AT_ONCE)]
        results = await asyncio.gather(*jobs, return_exceptions=True)
    return [(number % len(kinds), result) for number, result in enumerate(results) if result != 200]


def test_a_hundred_requests_of_every_kind_wake_it_once(server, api, make):
    sandbox = make()
    start_site(api, sandbox)
    for round in range(1, 4):
        api.pause(sandbox)
        assert asyncio.run(wake_concurrently(server, sandbox)) == []
        assert api.status(sandbox) == "running"
        assert len(api.events(sandbox, "woken")) == round


def test_looking_at_it_does_not_wake_it(api, sandbox):
    api.pause(sandbox)
    for path in ("status", "info", "urls", "events", "logs", "metrics"):
        api.get(f"/sandboxes/{sandbox}/{path}")
    assert api.status(sandbox) == "paused"
    assert api.events(sandbox, "woken") == []


def test_a_preview_keeps_a_sandbox_awake_while_it_is_open(server, api, make):
    sandbox = make(timeout=2)
    start_site(api, sandbox)
    preview = Preview(server, sandbox, "path")

    async def observe():
        options = {"proxy": None, "ping_interval": None, "open_timeout": TIMEOUT}
        async with connect(preview.websocket_url + "/ws", **options) as socket:
            begin = time.time()
            # Silence on the line for longer than the sandbox's time: that is what is tested.
            await asyncio.sleep(5)
            await socket.send("still here")
            return await socket.recv(), begin, time.time()

    response, begin, end = asyncio.run(observe())
    assert response == "still here"
    assert pauses(api, sandbox, begin, end) == []
    wait_for(lambda: api.status(sandbox) == "paused", "it is paused when nobody looks")


def test_a_sandbox_without_automatic_wake_says_so(api, make):
    sandbox = make(auto_resume=False)
    api.pause(sandbox)
    reply = api.post("/sandboxes/run-command", {"sandbox_id": sandbox, "command": "true"})
    assert reply.status_code == 409
    assert api.ok("POST", "/sandboxes/connect", {"sandbox_id": sandbox})["status"] == "running"


def test_wakers_and_pausers_at_once_end_in_one_state(server, api, make):
    sandbox = make()

    async def struggle():
        async with httpx.AsyncClient(base_url=server.url, timeout=TIMEOUT, trust_env=False) as client:
            jobs = []
            for _ in range(20):
                jobs.append(client.post("/sandboxes/run-command", json={"sandbox_id": sandbox, "command": "true"}))
                jobs.append(client.post(f"/sandboxes/{sandbox}/pause"))
                jobs.append(client.post(f"/sandboxes/{sandbox}/resume"))
            return {reply.status_code for reply in await asyncio.gather(*jobs)}

    assert asyncio.run(struggle()) <= {200, 409, 408, 502, 503}
    assert api.run(sandbox, "echo whole")["output"] == "whole\n"
    kinds = [event["kind"] for event in api.events(sandbox) if event["kind"] in ("paused", "woken")]
    assert kinds == [("paused", "woken")[at % 2] for at in range(len(kinds))]
