"""The lines of an execution's stream, as the SDKs read them."""

import json
import time

KEEPALIVE = {"type": "keepalive"}
END = {"type": "end_of_execution"}


def line(event: dict) -> bytes:
    """One event as it is sent.

    ASCII only: the Python SDK splits lines at every separator Unicode knows, the JavaScript SDK decodes chunk by chunk
    and would break a character that spans two.
    """
    return json.dumps(event, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def output(stream: str, text: str) -> dict:
    """What code printed; `stream` is `stdout` or `stderr`. Times are nanoseconds."""
    return {"type": stream, "text": text, "timestamp": time.time_ns()}


def error(name: str, value: str, traceback: str = "") -> dict:
    """How the code failed."""
    return {"type": "error", "name": name, "value": value, "traceback": traceback or f"{name}: {value}"}


def count(number: int) -> dict:
    """Which execution of its context this is."""
    return {"type": "number_of_executions", "execution_count": number}
