"""Links to ports of sandboxes: who may follow them, and where they lead."""

import asyncio
import hmac
import re
import secrets
import time

from errors import Problem, bad_request, not_found
from faults import PREVIEW, before
from listeners import listen
from relay import Head, refuse, relay

# Services of Daytona's own inside a sandbox.
_RESERVED = {2280, 22220, 22222}
_LONGEST_SIGNED = 86400


class Previews:
    """The proxy in front of all ports.

    A link has an authority of its own, as Daytona's have. Without a domain whose names lead here that is a port of
    127.0.0.1 for each link; with one it is `{port}-{id}` below the domain.
    """

    def __init__(self, cloud, domain=None):
        self._cloud, self._domain = cloud, domain
        self._listeners, self._connections = {}, set()
        self._shared = None

    async def start(self):
        if self._domain:
            self._shared, self._cloud.store.proxy_port = await listen(self._accept(self._by_name), self._cloud.store.proxy_port)
            return
        for record in self._cloud.store.sandboxes.values():
            for label, listens in record["previews"].items():
                await self._listen(record, label, listens)

    async def close(self):
        for server in [*self._listeners.values(), *filter(None, [self._shared])]:
            server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def link(self, record, port, token=None):
        """The URL of a port; with a token, a URL that needs nothing else."""
        label = f"{port}-{token or record['dto']['id']}"
        if self._domain:
            return f"http://{label}.{self._domain}:{self._cloud.store.proxy_port}"
        if label not in self._listeners:
            record["previews"][label] = await self._listen(record, label, record["previews"].get(label))
            self._cloud.store.save()
        return f"http://127.0.0.1:{record['previews'][label]}"

    async def _listen(self, record, label, listens):
        async def visit(reader, writer):
            await self._visit(reader, writer, lambda head: self._is_own_address(head, label))

        self._listeners[label], port = await listen(self._accept(visit), listens)
        return port

    @staticmethod
    def _accept(visit):
        return lambda port: asyncio.start_server(visit, "127.0.0.1", port, limit=1 << 18)

    def forget(self, record):
        """Closes the links of a sandbox that is gone."""
        for label in record["previews"]:
            if listener := self._listeners.pop(label, None):
                listener.close()

    def _is_own_address(self, head, label):
        listens = self._listeners[label].sockets[0].getsockname()[1] if label in self._listeners else None
        if head.host != f"127.0.0.1:{listens}":
            raise Problem(404, f"no preview at {head.host}", source="DAYTONA_PROXY")
        return label

    async def _by_name(self, reader, writer):
        await self._visit(reader, writer, lambda head: head.host.partition(".")[0])

    async def _visit(self, reader, writer, label_of):
        task = asyncio.current_task()
        self._connections.add(task)
        try:
            head = await Head.read(reader)
            if head is None:
                return
            fault = self._cloud.faults.meet(PREVIEW)
            try:
                if fault:
                    await before(fault, writer.transport)
                record, port = self._may_pass(head, label_of(head))
            except Problem as problem:
                await refuse(writer, problem)
                return
            self._cloud.sandboxes.touch(record)
            await relay(self._cloud, record, port, head, (reader, writer), fault)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    def _may_pass(self, head, label):
        """The sandbox and the port, if the visitor may go there."""
        match = re.fullmatch(r"(\d+)-(.+)", label)
        if not match:
            raise Problem(404, "no such preview", source="DAYTONA_PROXY")
        port, word = int(match[1]), match[2]
        for record in self._cloud.store.sandboxes.values():
            dto = record["dto"]
            if word == dto["id"]:
                given = head.headers.get("x-daytona-preview-token") or head.query.get("DAYTONA_SANDBOX_AUTH_KEY") or ""
                if not dto["public"] and not hmac.compare_digest(given.encode(), record["token"].encode()):
                    raise Problem(401, "unauthorized", "UNAUTHORIZED", source="DAYTONA_PROXY")
            elif word in record["signed"]:
                if record["signed"][word]["expires"] < time.time() or record["signed"][word]["port"] != port:
                    raise Problem(401, "unauthorized", "UNAUTHORIZED", source="DAYTONA_PROXY")
            else:
                continue
            if dto["state"] != "started":
                raise Problem(400, f"Sandbox is not started: it is {dto['state']}", source="DAYTONA_PROXY")
            return record, port
        raise Problem(404, "no such preview", source="DAYTONA_PROXY")


# --- operations


def _requested_port(cloud, request):
    record = cloud.sandboxes.find(request.match_info["sandboxIdOrName"])
    try:
        port = int(request.match_info["port"])
    except ValueError:
        port = 0
    if not 1 <= port <= 65535 or port in _RESERVED:
        raise bad_request("port must be from 1 to 65535 and none of Daytona's own")
    return record, port


async def get_port_preview_url(cloud, request, body):
    record, port = _requested_port(cloud, request)
    url = await cloud.previews.link(record, port)
    return {"sandboxId": record["dto"]["id"], "url": url, "token": record["token"]}


async def get_signed_port_preview_url(cloud, request, body):
    record, port = _requested_port(cloud, request)
    seconds = int(request.query.get("expiresInSeconds", 60))
    if not 1 <= seconds <= _LONGEST_SIGNED:
        raise bad_request(f"expiresInSeconds must be from 1 to {_LONGEST_SIGNED}")
    token = secrets.token_hex(8)
    record["signed"][token] = {"port": port, "expires": time.time() + seconds}
    url = await cloud.previews.link(record, port, token)
    cloud.store.save()
    return {"sandboxId": record["dto"]["id"], "port": port, "token": token, "url": url}


async def expire_signed_port_preview_url(cloud, request, body):
    record, port = _requested_port(cloud, request)
    existing = record["signed"].get(request.match_info["token"])
    if not existing or existing["port"] != port:
        raise not_found("no such signed preview")
    existing["expires"] = 0
    cloud.store.save()
