"""All contexts of a sandbox."""

import asyncio
import os

from .context import Context
from .errors import Refused
from .languages import Languages

# Each is a process or may become one.
MAX_CONTEXTS = 256


class Contexts:
    """Contexts by id, and for each language the one that is used when none is named."""

    def __init__(self, languages: Languages, home: str):
        self._languages = languages
        self._home = home
        self._by_id: dict[str, Context] = {}
        self._defaults: dict[str, Context] = {}

    def open_defaults(self) -> None:
        """The two that every sandbox has from the start. Only Python is started, the other is cheap when wanted."""
        self._add_default("python").open_ahead()
        self._add_default("javascript")

    def list(self) -> list[Context]:
        return list(self._by_id.values())

    def get(self, context_id: str) -> Context:
        context = self._by_id.get(context_id)
        if context is None:
            raise Refused(404, f"there is no context `{context_id[:100]}`")
        return context

    async def default(self, language: str) -> Context:
        """The context of a language; made when it is first used."""
        language = await self._languages.check(language)
        return self._defaults.get(language) or self._add_default(language)

    async def create(self, language: str, cwd: str | None) -> Context:
        language = await self._languages.check(language)
        if len(self._by_id) >= MAX_CONTEXTS:
            raise Refused(429, f"there are {MAX_CONTEXTS} contexts; remove one first")
        position = os.path.join(self._home, os.path.expanduser(cwd or self._home))
        try:
            await asyncio.to_thread(os.makedirs, position, exist_ok=True)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "not a path"
            raise Refused(400, f"the working directory `{position[:200]}` cannot be used: {reason}") from None
        context = self._add(language, position)
        context.open_ahead()
        return context

    def remove(self, context_id: str) -> None:
        context = self.get(context_id)
        del self._by_id[context.id]
        if self._defaults.get(context.language) is context:
            del self._defaults[context.language]
        context.close()

    def close(self) -> None:
        for context in self.list():
            context.close()

    def _add_default(self, language: str) -> Context:
        context = self._defaults[language] = self._add(language, self._home)
        return context

    def _add(self, language: str, cwd: str) -> Context:
        context = Context(self._languages, language, cwd)
        self._by_id[context.id] = context
        return context
