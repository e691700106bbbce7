"""Connections: one request after the other, each answered at once or with a stream."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

from .errors import Refused
from .http_message import MAX_HEAD, Reply, Request, head, read_request, refusal

# More than any client needs; beyond it a flood would take the descriptors the kernels need.
MAX_CONNECTIONS = 512

Stream = AsyncIterator[bytes]
Answer = Callable[[Request], Awaitable["Reply | Stream"]]


class HttpServer:
    """Listens and hands requests to `answer`, which returns a reply or the pieces of a stream."""

    def __init__(self, answer: Answer):
        self._answer = answer
        self._server: asyncio.Server | None = None
        self._connections = 0

    async def listen(self, host: str, port: int) -> None:
        self._server = await asyncio.start_server(self._serve, host, port, limit=MAX_HEAD, backlog=256)

    def close(self) -> None:
        if self._server:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        try:
            if self._connections > MAX_CONNECTIONS:
                writer.write(refusal(Refused(503, "too many connections; close some and try again")).encode(False))
                return
            while await self._serve_one(reader, writer):
                pass
        except (ConnectionError, TimeoutError):
            pass
        finally:
            self._connections -= 1
            with contextlib.suppress(OSError, asyncio.CancelledError):
                writer.close()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answers one request; false when the connection ends with it."""
        try:
            request = await read_request(reader, writer)
        except Refused as refused:
            # What follows on this connection may be the rest of a body.
            writer.write(refusal(refused).encode(False))
            await writer.drain()
            return False
        if request is None:
            return False
        try:
            answer = await self._answer(request)
        except Refused as refused:
            answer = refusal(refused)
        except Exception:
            logging.exception("cannot answer %s %s", request.method, request.path)
            answer = refusal(Refused(500, "the code interpreter failed; its log says why"))
        if isinstance(answer, Reply):
            writer.write(answer.encode(request.keeps_alive))
            await writer.drain()
            return request.keeps_alive
        return await self._stream(answer, request, reader, writer)

    async def _stream(self, pieces: Stream, request: Request, reader, writer) -> bool:
        """Sends pieces as they come, and notices when nobody is there any more to take them."""
        headers = {"Content-Type": "application/x-ndjson", "Transfer-Encoding": "chunked", "X-Accel-Buffering": "no"}
        # Closing afterwards is simpler than keeping what a client may have sent meanwhile, and costs little.
        writer.write(head(200, headers, False))
        sending = asyncio.ensure_future(self._send(pieces, writer))
        leaving = asyncio.ensure_future(wait_for_end(reader))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # The stream's own clean-up interrupts the code.
            for task in (sending, leaving):
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)
            await pieces.aclose()
        return False

    async def _send(self, pieces: Stream, writer: asyncio.StreamWriter) -> None:
        async for piece in pieces:
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()


async def wait_for_end(reader: asyncio.StreamReader) -> None:
    """Returns when the client has closed its side."""
    with contextlib.suppress(ConnectionError):
        while await reader.read(4096):
            pass
