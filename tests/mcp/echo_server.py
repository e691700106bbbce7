"""A small MCP server on standard input and output, for tests of users' own servers."""

import json
import os
import sys

TOOLS = [
    {
        "name": "echo",
        "description": "Says it back",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    },
    {"name": "die", "description": "Ends the server", "inputSchema": {"type": "object", "properties": {}}},
]


def answer(method, params):
    if method == "initialize":
        info = {"name": "echo", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        if params["name"] == "die":
            os._exit(9)
        text = f"{os.environ.get('GREETING', '')} {params['arguments']['text']}"
        return {"content": [{"type": "text", "text": text}]}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        result = answer(message["method"], message.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
