"""One connection of a preview, passed on byte by byte: streams, upgrades and half-closed ends stay what they are."""

import asyncio
import json
from urllib.parse import parse_qsl, urlsplit

from faults import cut

_CHUNK = 1 << 16
_MOST_HEAD = 1 << 17


class Head:
    """The head of a request."""

    def __init__(self, raw):
        first, *lines = raw.decode("latin-1").split("\r\n")
        self.method, self.target, self.version = first.split(" ", 2)
        self.lines = [tuple(part.strip() for part in line.split(":", 1)) for line in lines if ":" in line]
        self.headers = {name.lower(): value for name, value in self.lines}
        self.host = self.headers.get("host", "")
        self.is_upgrade = "upgrade" in self.headers.get("connection", "").lower()
        self.query = dict(parse_qsl(urlsplit(self.target).query))

    @classmethod
    async def read(cls, reader):
        raw = b""
        while b"\r\n\r\n" not in raw:
            try:
                raw += await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                return None
            if len(raw) > _MOST_HEAD:
                raise ValueError("the head is too large")
        return cls(raw[:-4])

    def onward(self, host):
        """As the sandbox sees it. One request has one connection, unless it is upgraded to something else."""
        # Who asks is this proxy's to say.
        dropped = {"host", "x-forwarded-for", "x-forwarded-host", "x-daytona-preview-token", "x-daytona-skip-preview-warning", "x-daytona-disable-cors"}
        dropped |= set() if self.is_upgrade else {"connection", "keep-alive"}
        stored = [(name, value) for name, value in self.lines if name.lower() not in dropped]
        added = [("Host", host), ("X-Forwarded-Host", self.host)] + ([] if self.is_upgrade else [("Connection", "close")])
        lines = [f"{self.method} {self.target} {self.version}", *(f"{name}: {value}" for name, value in [*added, *stored])]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


async def refuse(writer, problem):
    outcome = {"statusCode": problem.status, "message": problem.message, "source": problem.source}
    body = json.dumps({**outcome, "code": problem.code} if problem.code else outcome).encode()
    head = f"HTTP/1.1 {problem.status} Refused\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    writer.write(head.encode() + b"Connection: close\r\n\r\n" + body)
    await writer.drain()


async def relay(cloud, record, port, head, visitor, fault=None):
    """Connects both sides through the preview of the real sandbox until both have ended."""
    reader, writer = visitor
    address, native_port = cloud.backing.address
    inside, onward = await asyncio.open_connection(address, native_port, limit=1 << 18)
    try:
        onward.write(head.onward(f"{port}-{record['native']}.localhost:{native_port}"))
        await onward.drain()

        def touched():
            cloud.sandboxes.touch(record)

        there = asyncio.create_task(_copy(reader, onward, touched))
        back = asyncio.create_task(_copy(inside, writer, touched, fault))
        try:
            # A visitor that has said all may still be answered; an answer that is over ends a plain exchange.
            await back
            if head.is_upgrade:
                await there
        finally:
            there.cancel()
            back.cancel()
            await asyncio.gather(there, back, return_exceptions=True)
    finally:
        onward.close()


async def _copy(source, sink, touched, fault=None):
    kind = fault.get("kind") if fault else None
    while chunk := await source.read(1 if kind == "slow" else _CHUNK):
        touched()
        if kind == "lost":
            cut(sink.transport)
        sink.write(chunk[: len(chunk) // 2] if kind == "half" else chunk)
        await sink.drain()
        if kind == "half":
            cut(sink.transport)
        if kind == "slow":
            await asyncio.sleep(fault.get("pause", 0.01))
    if sink.can_write_eof():
        sink.write_eof()
