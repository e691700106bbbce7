"""Which languages there are, under which names, and how a kernel of each is started."""

import asyncio
import shutil
from pathlib import Path

from .bash import Bash
from .errors import Refused
from .forker import Forker
from .kernel import Kernel
from .node import Node, strips_types

ALIASES = {
    "py": "python",
    "python3": "python",
    "ipython": "python",
    "js": "javascript",
    "node": "javascript",
    "nodejs": "javascript",
    "ts": "typescript",
    "sh": "bash",
    "shell": "bash",
}
LANGUAGES = ("python", "javascript", "typescript", "bash", "r", "java")


class Languages:
    """Starts kernels."""

    def __init__(self, forker: Forker, node: str, node_kernel: Path):
        self._forker = forker
        self._node = shutil.which(node)
        self._node_kernel = node_kernel
        self._strips_types: bool | None = None

    async def check(self, name: str) -> str:
        """The language's one name, if it can be had here."""
        language = ALIASES.get(name.lower(), name.lower())
        if await self._has(language):
            return language
        what = "is not installed in this template" if language in LANGUAGES else "is not a language this server knows"
        installed = [each for each in LANGUAGES if await self._has(each)]
        raise Refused(400, f"`{name[:100]}` {what}; installed are: {', '.join(installed)}")

    async def _has(self, language: str) -> bool:
        match language:
            case "python":
                return True
            case "bash":
                return shutil.which("bash") is not None
            case "javascript":
                return self._node is not None
            case "typescript":
                if self._strips_types is None:
                    self._strips_types = self._node is not None and await asyncio.to_thread(strips_types, self._node)
                return self._strips_types
        return False

    async def open(self, language: str, cwd: str) -> Kernel:
        """A new kernel."""
        if language == "python":
            return await self._forker.open(cwd)
        if language == "bash":
            return await Bash.open(cwd)
        return Node.open(self._node, self._node_kernel, language, cwd)
