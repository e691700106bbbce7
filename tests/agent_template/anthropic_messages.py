"""Anthropic's Messages, streamed."""

import json
import secrets


def is_authorised(headers, keys):
    return headers.get("x-api-key") == keys["anthropic"]


def events(body, model):
    """The answer to a request, as events."""
    outcome = _tool_result(body)
    if outcome is not None:
        return _message(body, _text(f"{model.answer} {outcome}"), "end_turn")
    name, arguments = model.tool or ("Bash", {"command": model.command, "description": "Does the task"})
    if any(tool.get("name") == name for tool in body.get("tools", [])):
        return _message(body, _call(name, arguments), "tool_use")
    # Asked for something beside the task, a title perhaps.
    return _message(body, _text("A task"), "end_turn")


def _tool_result(body):
    """What the tool gave, if that is what was sent last."""
    content = body["messages"][-1]["content"]
    results = [part for part in content if isinstance(part, dict) and part.get("type") == "tool_result"]
    if not results:
        return None
    inner = results[-1]["content"]
    return inner if isinstance(inner, str) else "".join(part.get("text", "") for part in inner)


def _text(text):
    return {"type": "text", "text": ""}, {"type": "text_delta", "text": text}


def _call(name, arguments):
    block = {"type": "tool_use", "id": f"toolu_{secrets.token_hex(8)}", "name": name, "input": {}}
    return block, {"type": "input_json_delta", "partial_json": json.dumps(arguments)}


def _message(body, content, reason):
    block, delta = content
    message = {
        "id": f"msg_{secrets.token_hex(8)}", "type": "message", "role": "assistant", "model": body["model"], "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 1},
    }  # fmt: skip
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]
