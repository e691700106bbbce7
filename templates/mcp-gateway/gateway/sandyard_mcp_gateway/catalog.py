"""Servers that are installed here, by the names the SDKs know. Nothing is downloaded when a sandbox starts."""

from dataclasses import dataclass, field


class Unusable(Exception):
    """A server that cannot be started; the text is for the person who asked for it."""


@dataclass
class Launch:
    """How to start a server that speaks MCP over its standard input and output."""

    command: str
    args: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    cwd: str | None = None

    def entry(self):
        """In the words of the `mcpServers` files that everybody uses."""
        entry = {"command": self.command, "args": self.args, "env": self.env}
        return {**entry, "cwd": self.cwd} if self.cwd else entry


def _paths(name, settings, fallback):
    paths = settings.get("paths", fallback)
    if not isinstance(paths, list) or not all(isinstance(path, str) and path.startswith("/") for path in paths):
        raise Unusable(f"`{name}` takes `paths`, a list of absolute paths")
    return paths


def _git(settings):
    paths = _paths("git", settings, [])
    return Launch("mcp-server-git", ["--repository", paths[0]] if paths else [])


_SERVERS = {
    "fetch": lambda settings: Launch("mcp-server-fetch"),
    "filesystem": lambda settings: Launch("mcp-server-filesystem", _paths("filesystem", settings, ["/home/user"])),
    "git": _git,
    "memory": lambda settings: Launch("mcp-server-memory"),
    "sequentialthinking": lambda settings: Launch("mcp-server-sequential-thinking"),
    "time": lambda settings: Launch("mcp-server-time"),
}


def find(name, settings):
    """How to start the server that a user calls by this name."""
    if "command" in settings:
        return _custom_server(name, settings)
    if name not in _SERVERS:
        raise Unusable(
            f"`{name}` is not installed in this template. Installed are: {', '.join(sorted(_SERVERS))}. Others can be "
            "had as `github/owner/name` with `runCmd` and `installCmd`, or with a `command` of your own"
        )
    return _SERVERS[name](settings)


def _custom_server(name, settings):
    """A server of the user's own, in the words of the `mcpServers` files."""
    command, args, env = settings["command"], settings.get("args", []), settings.get("env", {})
    if not isinstance(command, str) or not isinstance(args, list) or not isinstance(env, dict):
        raise Unusable(f"`{name}` needs `command`, a text; it may have `args`, a list, and `env`, an object")
    return Launch(command, [str(arg) for arg in args], {key: str(value) for key, value in env.items()})
