"""JavaScript, and TypeScript where node can strip types."""

import json
import struct
import subprocess
from pathlib import Path

from .channel import Channel
from .kernel import Kernel
from .spawner import ending_of, spawn

# Evaluated in the context's directory, so that imports are looked up from there and not from where our program is.
BOOTSTRAP = """
const load = (name, options) => import(name, options);
const { start } = await import({program});
start(load, {language}, {descriptor});
"""


class Node(Kernel):
    """Speaks the common way; only interrupting is different."""

    program = "node"

    @classmethod
    def open(cls, node: str, program: Path, language: str, cwd: str) -> "Node":
        channel = Channel()
        control = channel.kernel_ends.control.fileno()
        values = {"{program}": program.as_uri(), "{language}": language, "{descriptor}": control}
        script = BOOTSTRAP
        for position, value in values.items():
            script = script.replace(position, json.dumps(value))
        command = [node, "--disable-warning=ExperimentalWarning", "--input-type=module", "--eval", script]
        process = spawn("node", command, cwd, channel, pass_fds=[control])
        return cls(channel, process.pid, lambda: ending_of(process))

    def signal(self) -> None:
        # Node sees a signal only when it is idle: the request ends the script, the signal ends children it waits for.
        request = json.dumps({"interrupt": True}).encode()
        try:
            self._channel.control.send(struct.pack(">I", len(request)) + request)
        except OSError:
            pass
        super().signal()


def strips_types(node: str) -> bool:
    """Whether this node reads TypeScript."""
    check = "process.exit(typeof require('module').stripTypeScriptTypes === 'function' ? 0 : 1)"
    return subprocess.run([node, "-e", check], stdin=subprocess.DEVNULL, capture_output=True).returncode == 0
