"""Reading requests and writing answers: as much of HTTP/1.1 as clients and proxies use."""

import asyncio
import json
from dataclasses import dataclass, field
from http import HTTPStatus

from .errors import Refused

# Heads are short; this is what most servers allow.
MAX_HEAD = 64 * 1024
MAX_BODY = 32 * 1024 * 1024
# A connection may be silent for as long before a request begins. Then a whole head has to arrive in time, and a body at the
# rate below: a slower client only occupies a connection.
IDLE_SECONDS = 60.0
HEAD_SECONDS = 10.0
BODY_SECONDS = 20.0
BODY_BYTES_PER_SECOND = 64 * 1024


@dataclass
class Request:
    """A request, complete."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""
    keeps_alive: bool = True

    def json(self) -> dict:
        """The body's fields. Absent is as good as empty."""
        if not self.body.strip():
            return {}
        try:
            value = json.loads(self.body)
        except (ValueError, RecursionError):
            raise Refused(400, "the body is not JSON") from None
        if not isinstance(value, dict):
            raise Refused(400, "the body has to be a JSON object")
        return value


@dataclass
class Reply:
    """An answer that is sent at once."""

    status: int
    value: object = None
    headers: dict[str, str] = field(default_factory=dict)

    def encode(self, keeps_alive: bool) -> bytes:
        body = b"" if self.value is None else json.dumps(self.value).encode()
        headers = {"Content-Length": str(len(body)), **self.headers}
        if self.status == 204:
            del headers["Content-Length"]
        if body:
            headers["Content-Type"] = "application/json"
        return head(self.status, headers, keeps_alive) + body


def refusal(refused: Refused) -> Reply:
    """An error as the SDKs show it."""
    return Reply(refused.status, {"code": refused.status, "message": refused.message})


def head(status: int, headers: dict[str, str], keeps_alive: bool) -> bytes:
    """The first lines of an answer."""
    headers = {**headers, "Connection": "keep-alive" if keeps_alive else "close"}
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


async def read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Request | None:
    """The next request of a connection; none when the client is done."""
    try:
        first = await in_time(reader.readexactly(1), IDLE_SECONDS)
    except (asyncio.IncompleteReadError, TimeoutError):
        # Nothing is said to one who asks nothing: he might take it for the answer to what he is about to ask.
        return None
    try:
        raw = first + await in_time(reader.readuntil(b"\r\n\r\n"), HEAD_SECONDS)
    except asyncio.IncompleteReadError:
        return None
    except asyncio.LimitOverrunError:
        raise Refused(431, f"the head of the request is larger than {MAX_HEAD} bytes") from None
    except TimeoutError:
        raise Refused(408, f"the head of the request did not arrive within {HEAD_SECONDS:.0f} s") from None
    request = parse_head(raw)
    if request.headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    try:
        request.body = await read_body(reader, request.headers)
    except asyncio.IncompleteReadError:
        return None
    return request


def parse_head(raw: bytes) -> Request:
    first, *rest = raw.decode("latin-1").rstrip("\r\n").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise Refused(400, "this is not a request of HTTP/1.1")
    headers: dict[str, str] = {}
    for line in rest:
        name, colon, value = line.partition(":")
        name = name.lower()
        if not colon or not name or name != name.strip():
            raise Refused(400, "a header of the request is malformed")
        # Two lengths, or a length and chunks, are how requests are smuggled past a proxy.
        if name in headers and name in ("content-length", "transfer-encoding"):
            raise Refused(400, f"the header {name} is there twice")
        headers[name] = value.strip()
    method, target, version = parts
    keeps_alive = version != "HTTP/1.0" and headers.get("connection", "").lower() != "close"
    return Request(method, target.partition("?")[0], headers, keeps_alive=keeps_alive)


async def read_body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    coding, length = headers.get("transfer-encoding"), headers.get("content-length")
    if coding is not None:
        if coding.lower() != "chunked" or length is not None:
            raise Refused(400, "the body has to be sent either with a length or in chunks")
        return await read_chunks(reader)
    if length is None:
        return b""
    if not (length.isascii() and length.isdigit()):
        raise Refused(400, "the content length is not a number")
    return await read_exactly(reader, within_limit(int(length)))


async def read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while True:
        size = (await read_line(reader)).split(b";")[0].strip()
        try:
            count = within_limit(len(body) + int(size, 16)) - len(body)
        except ValueError:
            raise Refused(400, "the size of a chunk is not a number") from None
        if count < 0:
            raise Refused(400, "the size of a chunk is not a number")
        if count == 0:
            break
        body += await read_exactly(reader, count)
        await read_line(reader)
    while (await read_line(reader)).strip():
        pass
    return bytes(body)


def within_limit(size: int) -> int:
    if size > MAX_BODY:
        raise Refused(413, f"the body is larger than {MAX_BODY // 1024 // 1024} MiB; write it to a file and run that")
    return size


async def read_exactly(reader: asyncio.StreamReader, count: int) -> bytes:
    return await of_body(reader.readexactly(count), BODY_SECONDS + count / BODY_BYTES_PER_SECOND)


async def read_line(reader: asyncio.StreamReader) -> bytes:
    try:
        return await of_body(reader.readuntil(b"\n"), BODY_SECONDS)
    except asyncio.LimitOverrunError:
        raise Refused(400, "the size of a chunk is not a number") from None


async def of_body(reading, seconds: float) -> bytes:
    try:
        return await in_time(reading, seconds)
    except TimeoutError:
        raise Refused(408, "the body of the request did not arrive in time") from None


async def in_time(reading, seconds: float) -> bytes:
    """Reads what arrives in this time. Data is checked before the time-out, because this process itself may have been delayed."""
    task = asyncio.ensure_future(reading)
    try:
        await asyncio.wait({task}, timeout=seconds)
        if not task.done():
            raise TimeoutError
        return task.result()
    finally:
        task.cancel()
