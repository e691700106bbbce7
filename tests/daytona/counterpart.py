"""Daytona as far as a client can tell, with a real Sandyard behind it.

The official SDK drives it without complaint (`test_*.py`), and what it says and accepts is taken from that SDK's own
generated code (`contract.py`). Sandboxes are real: commands run, files are kept, ports are reached.
"""

import argparse
import asyncio
import logging
import signal
import sys
from pathlib import Path

from aiohttp import web

import control
import listing
import previews
import snapshots
import telemetry
import toolbox_files
import toolbox_process
import toolbox_sessions
from backing import Backing
from contract import CONTROL, TOOLBOX
from dispatch import Dispatch, said_no
from errors import not_found
from events import Events
from faults import Faults
from listeners import listen
from previews import Previews
from report import Report
from sandboxes import Sandboxes
from snapshots import Snapshots
from store import Store


class Yard:
    """Everything the handlers need."""

    def __init__(self, options):
        state = Path(options.state) if options.state else None
        if state:
            state.mkdir(parents=True, exist_ok=True)
        self.key = options.key
        # The organization's maximum lifespan of sandboxes in minutes.
        self.lifespan = None
        self.store = Store(state)
        self.report = Report(self.store)
        self.faults = Faults()
        self.events = Events(self.key)
        self.backing = Backing(state)
        self.sandboxes = Sandboxes(self, options.moment, options.minute)
        self.snapshots = Snapshots(self.store, self.backing, options.moment)
        self.previews = Previews(self, options.preview_domain)
        self.url = None

    @property
    def toolbox_url(self):
        return f"{self.url}/toolbox"


def application(yard):
    app = web.Application(client_max_size=64 << 20)
    app.router.add_get("/__counterpart/report", lambda request: _report(yard))
    app.router.add_post("/__counterpart/fault", lambda request: _fault(yard, request))
    app.router.add_delete("/__counterpart/fault", lambda request: _no_faults(yard))
    app.router.add_post("/__counterpart/lifespan", lambda request: _bound_life(yard, request))
    app.router.add_post("/__counterpart/error", lambda request: _break(yard, request))
    yard.events.attach(app)
    Dispatch(yard, CONTROL, control, listing, snapshots, previews, telemetry).attach(app, "/api")
    Dispatch(yard, TOOLBOX, toolbox_files, toolbox_process, toolbox_sessions).attach(app, "/toolbox/{toolbox_sandbox}")
    app.router.add_route("*", "/{rest:.*}", lambda request: _unknown(yard, request))
    return app


async def _report(yard):
    return web.json_response(yard.report.told())


async def _fault(yard, request):
    yard.faults.ask(await request.json())
    return web.json_response({})


async def _no_faults(yard):
    yard.faults.clear()
    return web.json_response({})


async def _bound_life(yard, request):
    yard.lifespan = (await request.json())["minutes"]
    return web.json_response({})


async def _break(yard, request):
    asked = await request.json()
    record = yard.sandboxes.find(asked["sandboxId"])
    await yard.sandboxes.fail(record, asked.get("reason", "broken on demand"), asked.get("recoverable", False))
    return web.json_response({})


async def _unknown(yard, request):
    yard.report.unknown(request)
    return said_no(not_found(f"Cannot {request.method} {request.path}"), request)


async def serve(options):
    yard = Yard(options)
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    try:
        await yard.backing.start()
        runner = web.AppRunner(application(yard), access_log=None, shutdown_timeout=0.1)
        await runner.setup()

        async def serve_at(port):
            site = web.TCPSite(runner, "127.0.0.1", port)
            await site.start()
            return site

        _, yard.store.port = await listen(serve_at, options.port or yard.store.port)
        yard.url = f"http://127.0.0.1:{yard.store.port}"
        await yard.previews.start()
        yard.store.save()
        yard.sandboxes.resume()
        print(f"{yard.url}/api", flush=True)
        await ended.wait()
        await yard.sandboxes.close()
        await yard.previews.close()
        await yard.events.close()
        await runner.cleanup()
    finally:
        await yard.backing.close()
        yard.store.remove()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0, help="0: any, or the one of the last time with --state")
    parser.add_argument("--key", default="dtn_counterpart", help="the API key it accepts")
    parser.add_argument("--state", help="a short directory where all is kept, for a process that may be killed")
    parser.add_argument("--minute", type=float, default=60.0, metavar="SECONDS", help="how long a minute of intervals is")
    parser.add_argument("--moment", type=float, default=0.05, metavar="SECONDS", help="the least time a change of state takes")
    parser.add_argument("--preview-domain", help="previews are `{port}-{id}` below this name, which must lead to 127.0.0.1")
    options = parser.parse_args()
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    asyncio.run(serve(options))


if __name__ == "__main__":
    main()
