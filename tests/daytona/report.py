"""Who called what: so that a test can say that all a client calls is also called by the official SDK."""

from pathlib import Path

# How the provider calls itself, and all it is known to call.
PROVIDER = "sandyard"
LISTED = Path(__file__).with_name("operations.txt")
# More would only fill the memory.
_MOST_KEPT = 1000


class Report:
    """Operations by client, and what was refused because no official client would have sent it."""

    def __init__(self, store):
        self._store = store
        self._seen = store.seen
        for kind in ("operations", "refused", "unknown"):
            self._seen.setdefault(kind, {} if kind == "operations" else [])

    def called(self, request, operation):
        of_client = self._seen["operations"].setdefault(client_of(request), {})
        of_client[operation] = of_client.get(operation, 0) + 1
        if of_client[operation] == 1:
            self._store.save()

    def refused(self, request, operation, reason):
        """A request that does not keep to the contract."""
        self._note("refused", {"client": client_of(request), "operation": operation, "why": reason})

    def unknown(self, request):
        """A route that Daytona does not have, or that this counterpart does not."""
        self._note("unknown", {"client": client_of(request), "method": request.method, "path": request.path})

    def _note(self, kind, what):
        if len(self._seen[kind]) < _MOST_KEPT:
            self._seen[kind].append(what)
            self._store.save()

    def summary(self):
        return self._seen


def client_of(request):
    """The client's own word for itself; the SDK says `sdk-python`."""
    response = request.headers.get("X-Daytona-Source") or request.headers.get("User-Agent", "unknown")
    return response.split("/")[0].split(" ")[0].lower()


def contract_operations():
    """The operations of the provider that the tests of this folder drive with the official SDK."""
    lines = (line.strip() for line in LISTED.read_text().splitlines())
    return {line for line in lines if line and not line.startswith("#")}
