"""OpenAI's Responses, streamed."""

import json
import secrets

# The tools by which Codex runs commands, and how each is told the command. Which of them it offers depends on the model.
_SHELLS = {
    "exec_command": lambda command: {"cmd": command},
    "shell_command": lambda command: {"command": command},
    "shell": lambda command: {"command": ["bash", "-c", command]},
}


def is_authorised(headers, keys):
    return headers.get("authorization") == f"Bearer {keys['openai']}"


def events(body, model):
    """The answer to a request, as events."""
    outcome = _tool_result(body)
    if outcome is not None:
        return _response(_text(f"{model.answer} {outcome}"))
    return _response(_call(model.command, dict(_offered(body))))


def _tool_result(body):
    """What the tool gave, if that was sent."""
    results = [item for item in body["input"] if item.get("type") in ("function_call_output", "custom_tool_call_output")]
    if not results:
        return None
    output = results[-1]["output"]
    return output if isinstance(output, str) else "".join(part.get("text", "") for part in output)


def _offered(body):
    """The names of the tools, each with the group it is in: older models get a list, newer ones groups among the input."""
    yield from ((tool.get("name"), None) for tool in body.get("tools", []))
    for item in body["input"]:
        for group in item.get("tools", []) if item.get("type") == "additional_tools" else []:
            yield from ((tool.get("name"), group["name"]) for tool in group.get("tools", [group]))


def _call(command, offered):
    number = secrets.token_hex(8)
    call = {"call_id": f"call_{number}", "status": "completed"}
    shell = next((name for name in _SHELLS if name in offered), None)
    if shell is not None:
        arguments = json.dumps(_SHELLS[shell](command))
        return {"type": "function_call", "id": f"fc_{number}", "name": shell, "arguments": arguments, **call}
    if "exec" in offered:
        # A script that calls the tools itself.
        script = f"const ran = await tools.exec_command({json.dumps({'cmd': command})});\ntext(ran.output ?? ran);"
        group = {"namespace": offered["exec"]} if offered["exec"] else {}
        return {"type": "custom_tool_call", "id": f"ctc_{number}", "name": "exec", "input": script, **group, **call}
    return _text(f"nothing to run commands with among {sorted(map(str, offered))}")


def _text(text):
    content = [{"type": "output_text", "text": text, "annotations": []}]
    about = {"id": f"msg_{secrets.token_hex(8)}", "role": "assistant", "status": "completed"}
    return {"type": "message", "content": content, **about}


def _response(item):
    about = {"id": f"resp_{secrets.token_hex(8)}", "object": "response"}
    usage = {"input_tokens": 10, "input_tokens_details": None, "output_tokens": 9, "output_tokens_details": None}
    done = {**about, "status": "completed", "output": [item], "usage": {**usage, "total_tokens": 19}}
    return [
        {"type": "response.created", "response": {**about, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": done},
    ]
