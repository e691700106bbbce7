"""Every route on one page."""

from collections.abc import AsyncIterator

from . import events
from .context import Context
from .contexts import Contexts
from .environment import SandboxEnvironment
from .errors import KernelFailed, Refused
from .execution import Execution
from .http_message import Reply, Request

KEEPALIVE_SECONDS = 5.0


class Api:
    """Answers requests."""

    def __init__(self, contexts: Contexts, environment: SandboxEnvironment):
        self._contexts = contexts
        self._environment = environment

    async def answer(self, request: Request) -> Reply | AsyncIterator[bytes]:
        match request.path.strip("/").split("/"):
            case ["health"]:
                allow(request, "GET", "HEAD")
                return Reply(200, {"status": "ok"} if request.method == "GET" else None)
            case ["execute"]:
                allow(request, "POST")
                return await self._execute(request)
            case ["contexts"]:
                allow(request, "GET", "POST")
                return self._list() if request.method == "GET" else await self._create(request)
            case ["contexts", context_id]:
                allow(request, "DELETE")
                self._contexts.remove(context_id)
                return Reply(204)
            case ["contexts", context_id, "restart"]:
                allow(request, "POST")
                return await self._restart(context_id)
        raise Refused(404, "no such route")

    async def _execute(self, request: Request) -> AsyncIterator[bytes]:
        fields = request.json()
        code = text(fields, "code")
        if code is None:
            raise Refused(400, "`code` is missing")
        context_id, language, own_variables = text(fields, "context_id"), text(fields, "language"), variables(fields)
        if context_id and language:
            raise Refused(400, "name either a context or a language, not both")
        if context_id:
            context = self._contexts.get(context_id)
        else:
            context = await self._contexts.default(language or "python")
        environment = await self._environment.read()
        return stream(context, Execution(code, environment, own_variables))

    def _list(self) -> Reply:
        return Reply(200, [context.describe() for context in self._contexts.list()])

    async def _create(self, request: Request) -> Reply:
        fields = request.json()
        context = await self._contexts.create(text(fields, "language") or "python", text(fields, "cwd"))
        return Reply(201, context.describe())

    async def _restart(self, context_id: str) -> Reply:
        try:
            await self._contexts.get(context_id).restart()
        except KernelFailed as failure:
            raise Refused(500, f"the context cannot be restarted: {failure}") from None
        return Reply(204)


async def stream(context: Context, execution: Execution) -> AsyncIterator[bytes]:
    """The events of an execution, with signs of life while it is silent or waits for its turn."""
    context.execute(execution)
    event = None
    try:
        while event is not events.END:
            event = await execution.next(KEEPALIVE_SECONDS)
            yield events.line(event)
    finally:
        if event is not events.END:
            context.abandon(execution)


def allow(request: Request, *methods: str) -> None:
    if request.method not in methods:
        raise Refused(405, f"{request.method} is not possible here; use {' or '.join(methods)}")


def text(fields: dict, name: str) -> str | None:
    """A field that is a text or absent."""
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise Refused(400, f"`{name}` has to be a text")
    return value


def variables(fields: dict) -> dict[str, str]:
    """The variables for this execution."""
    given = fields.get("env_vars") or {}
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise Refused(400, "`env_vars` has to map names to texts")
    for name, value in given.items():
        if not name or "=" in name or "\0" in name + value:
            raise Refused(400, "`env_vars` holds something that cannot be a variable")
    return given
