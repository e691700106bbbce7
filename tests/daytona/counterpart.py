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


class Cloud:
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


def application(cloud):
    app = web.Application(client_max_size=64 << 20)
    app.router.add_get("/__counterpart/report", lambda request: _report(cloud))
    app.router.add_post("/__counterpart/fault", lambda request: _fault(cloud, request))
    app.router.add_delete("/__counterpart/fault", lambda request: _no_faults(cloud))
    app.router.add_post("/__counterpart/lifespan", lambda request: _bound_life(cloud, request))
    app.router.add_post("/__counterpart/error", lambda request: _break(cloud, request))
    cloud.events.attach(app)
    Dispatch(cloud, CONTROL, control, listing, snapshots, previews, telemetry).attach(app, "/api")
    Dispatch(cloud, TOOLBOX, toolbox_files, toolbox_process, toolbox_sessions).attach(app, "/toolbox/{toolbox_sandbox}")
    app.router.add_route("*", "/{rest:.*}", lambda request: _unknown(cloud, request))
    return app


async def _report(cloud):
    return web.json_response(cloud.report.summary())


async def _fault(cloud, request):
    cloud.faults.ask(await request.json())
    return web.json_response({})


async def _no_faults(cloud):
    cloud.faults.clear()
    return web.json_response({})


async def _bound_life(cloud, request):
    cloud.lifespan = (await request.json())["minutes"]
    return web.json_response({})


async def _break(cloud, request):
    request_log = await request.json()
    record = cloud.sandboxes.find(request_log["sandboxId"])
    await cloud.sandboxes.fail(record, request_log.get("reason", "broken on demand"), request_log.get("recoverable", False))
    return web.json_response({})


async def _unknown(cloud, request):
    cloud.report.unknown(request)
    return said_no(not_found(f"Cannot {request.method} {request.path}"), request)


async def serve(options):
    cloud = Cloud(options)
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    try:
        await cloud.backing.start()
        runner = web.AppRunner(application(cloud), access_log=None, shutdown_timeout=0.1)
        await runner.setup()

        async def serve_at(port):
            site = web.TCPSite(runner, "127.0.0.1", port)
            await site.start()
            return site

        _, cloud.store.port = await listen(serve_at, options.port or cloud.store.port)
        cloud.url = f"http://127.0.0.1:{cloud.store.port}"
        await cloud.previews.start()
        cloud.store.save()
        cloud.sandboxes.resume()
        print(f"{cloud.url}/api", flush=True)
        await ended.wait()
        await cloud.sandboxes.close()
        await cloud.previews.close()
        await cloud.events.close()
        await runner.cleanup()
    finally:
        await cloud.backing.close()
        cloud.store.remove()


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
