"""Refusals as Daytona words them."""

import datetime


class Problem(Exception):
    """An answer that is not a success. `code` and `source` pick the class of the SDK's exception."""

    def __init__(self, status, message, code=None, source="DAYTONA_API", retry_after=None):
        super().__init__(message)
        self.status, self.message, self.code, self.source, self.retry_after = status, message, code, source, retry_after

    def body(self, request):
        outcome = {
            "statusCode": self.status,
            "message": self.message,
            "source": self.source,
            "path": request.path,
            "method": request.method,
            "timestamp": now(),
        }
        return {**outcome, "code": self.code} if self.code else outcome


def now():
    return stamp(datetime.datetime.now(datetime.UTC))


def stamp(time):
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def daemon(status, message, code):
    """A refusal of the toolbox inside a sandbox."""
    return Problem(status, message, code, source="DAYTONA_DAEMON")


def bad_request(message):
    return Problem(400, message, "BAD_REQUEST")


def not_found(message):
    return Problem(404, message, "NOT_FOUND")


def conflict(message):
    return Problem(409, message, "CONFLICT")
