"""A model that says what its script says, one turn after another; what it is told back is kept."""

from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr


class ScriptedModel(BaseChatModel):
    """Each turn is a list of tool calls `(name, arguments)`, or a text that ends the conversation."""

    turns: list[Any]
    _turn: int = PrivateAttr(default=0)
    _received: list[Any] = PrivateAttr(default_factory=list)

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **_):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **_):
        turn = self.turns[self._turn]
        self._turn += 1
        self._received = list(messages)
        if isinstance(turn, str):
            message = AIMessage(content=turn)
        else:
            calls = [{"name": name, "args": args, "id": f"call-{self._turn}-{n}"} for n, (name, args) in enumerate(turn)]
            message = AIMessage(content="", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])
