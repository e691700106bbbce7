"""From a request to the function that serves its operation, with the contract checked for request and response."""

import hmac
import logging

from aiohttp import web

from backing import NativeError
from contract import Refused
from errors import Problem, bad_request
from faults import strike
from report import LISTED, PROVIDER, client_of, contract_operations

log = logging.getLogger("counterpart")

# Anybody may ask for these.
_OPEN = {"config_controller_get_config"}
# These read their body themselves, since it is a form or large.
_STREAMED = {"upload_file", "upload_files"}
# These are also reached by a signature in the URL.
_SIGNED = {"upload_file", "download_file"}
# What counts requests, each for itself; what is not here is counted with all that has a key.
_THROTTLERS = {
    "sandbox-create": {"create_sandbox"},
    "sandbox-lifecycle": {
        *"start_sandbox stop_sandbox pause_sandbox archive_sandbox recover_sandbox resize_sandbox delete_sandbox".split(),
        *"fork_sandbox create_sandbox_snapshot".split(),
    },
}


class Dispatch:
    """Serves a table of operations with the handlers of some modules: functions that are called as the operation is."""

    def __init__(self, cloud, operations, *modules):
        self._cloud, self._contract = cloud, contract_operations()
        self._operations = operations
        self._handlers = {name: self._handler(modules, name) for name in operations}

    @staticmethod
    def _handler(modules, name):
        found = [getattr(module, name) for module in modules if hasattr(module, name)]
        assert len(found) == 1, f"operation {name} has {len(found)} handlers"
        return found[0]

    def attach(self, app, prefix):
        # Fixed words come before placeholders.
        for operation in sorted(self._operations.values(), key=lambda operation: operation.path.replace("{", "~")):
            app.router.add_route(operation.method, prefix + operation.path, self._serve(operation))

    def _serve(self, operation):
        async def serve(request):
            try:
                return await self._answer(operation, request)
            except Problem as problem:
                return said_no(problem, request, throttler_of(operation.name))

        return serve

    async def _answer(self, operation, request):
        self._cloud.report.called(request, operation.name)
        if client_of(request) == PROVIDER and operation.name not in self._contract:
            reason = f"{operation.name} is not in {LISTED.name}: list it, and drive it with the official SDK in a test beside it"
            self._cloud.report.refused(request, operation.name, reason)
            raise Problem(501, reason)
        if fault := self._cloud.faults.meet(operation.name):
            return await strike(fault, request, lambda: self._work(operation, request))
        return await self._work(operation, request)

    async def _work(self, operation, request):
        signed = operation.name in _SIGNED and "signature" in request.query
        if operation.name not in _OPEN and not signed:
            authenticate(request, self._cloud.key)
        try:
            if not signed:
                operation.check_query(request.query)
            body = None if operation.name in _STREAMED else operation.read(await request.read())
        except Refused as refused:
            self._cloud.report.refused(request, operation.name, str(refused))
            raise bad_request(str(refused)) from refused
        try:
            done = await self._handlers[operation.name](self._cloud, request, body)
        except NativeError as error:
            log.warning("%s: %s", operation.name, error)
            raise Problem(502 if error.status >= 500 else error.status, error.detail) from error
        if isinstance(done, web.StreamResponse):
            return done
        status, value = done if isinstance(done, tuple) else (operation.status, done)
        written = operation.write(value, status)
        return web.Response(status=status) if written is None else web.json_response(written, status=status)


def authenticate(request, key):
    given = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if not hmac.compare_digest(given.encode(), key.encode()):
        raise Problem(401, "Invalid credentials", "UNAUTHORIZED")


def throttler_of(name):
    found = [throttler for throttler, names in _THROTTLERS.items() if name in names]
    return found[0] if found else "authenticated"


def said_no(problem, request, throttler="authenticated"):
    """When to come back is said in the name of what counted, never in the header that everybody else has for it."""
    seconds, headers = problem.retry_after, {}
    if seconds is not None:
        outcome = {"Retry-After": seconds, "X-RateLimit-Limit": 600, "X-RateLimit-Remaining": 0, "X-RateLimit-Reset": seconds}
        headers = {f"{name}-{throttler}": str(value) for name, value in outcome.items()}
    return web.json_response(problem.body(request), status=problem.status, headers=headers)
