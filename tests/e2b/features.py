"""What the SDK in use has and an older one does not: the only place where versions differ."""

import inspect

import e2b
from e2b.sandbox_sync.commands.command import Commands


def accepts_option(function, option):
    return option in inspect.signature(function).parameters


# Every feature that some supported version lacks. A test names the one it needs; see `pytest.ini`.
FEATURES = {
    "stream_input": hasattr(Commands, "stream_input"),
    "retain_output": accepts_option(Commands.run, "retain_output"),
    "on_resume": accepts_option(e2b.Sandbox.connect, "on_resume"),
    "pause_mode": accepts_option(e2b.Sandbox.pause, "mode"),
    "strict_pause": accepts_option(e2b.Sandbox.pause, "strict"),
    "snapshot_mode": accepts_option(e2b.Sandbox.create_snapshot, "mode"),
    "idempotency_key": accepts_option(e2b.Sandbox.create, "idempotency_key"),
    "https_ports": "https_ports" in e2b.SandboxNetworkOpts.__annotations__,
    "http_version": "http_version" in e2b.ApiParams.__annotations__,
    "retries": "retries" in e2b.ApiParams.__annotations__,
    "service_busy": hasattr(e2b, "ServiceBusyException"),
    "not_running": hasattr(e2b, "SandboxNotRunningException"),
}

MISSING = sorted(name for name, is_there in FEATURES.items() if not is_there)

# Newer SDKs retry when the server sends `Retry-After`.
NO_RETRIES = {"retries": 0} if FEATURES["retries"] else {}

# What a sandbox that does not run any more raises, and what a full server does.
NotRunning = getattr(e2b, "SandboxNotRunningException", e2b.TimeoutException)
Busy = getattr(e2b, "ServiceBusyException", e2b.SandboxException)


def without_memory():
    """How the SDK is asked for a pause that keeps the files alone."""
    return {"mode": "filesystem"} if FEATURES["pause_mode"] else {"keep_memory": False}
