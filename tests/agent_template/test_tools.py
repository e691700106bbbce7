"""Coding agents and the browser as tools, by the official MCP client through the preview."""

import base64
import secrets

import pytest

from picture import colours
from tools import Tools, text
from waiting import wait_for

PATHS = {"claude_code": ("/v1/messages", "x-api-key", "{}", "anthropic"),
         "codex": ("/v1/responses", "authorization", "Bearer {}", "openai")}  # fmt: skip


@pytest.fixture
def tools(api, agent_sandbox):
    tools = Tools(api, agent_sandbox)
    yield tools
    tools.close()


@pytest.mark.parametrize("tool", PATHS)
def test_an_agent_does_a_task(api, model, agent_sandbox, tools, tool):
    path, header, form, key = PATHS[tool]
    mark = secrets.token_hex(8)
    model.task(f"printf {mark} > /workspace/{tool}.txt && echo made-$((40 + 2))", "The file is there:")
    more = {"allowed_tools": ["Bash"], "max_turns": 5} if tool == "claude_code" else {}
    result = tools.call(tool, prompt="Please do the task.", cwd="/workspace", timeout=350, **more)

    assert "The file is there:" in text(result) and "made-42" in text(result), text(result)
    assert api.read(agent_sandbox, f"/workspace/{tool}.txt") == mark
    outcome = result.structured_content
    assert outcome["exit_code"] == 0 and outcome["session_id"], outcome
    assert outcome["text"] == text(result)
    assert outcome["duration_seconds"] > 0, outcome
    assert tools.progress and any(tools.progress), "nothing was told while it ran"
    sent = {request.headers[header] for request in model.requests_for(path)}
    assert sent == {form.format(model.keys[key])}


PAGE = """<!doctype html><title>Inside</title>
<body style="margin:0;background:rgb(12,120,200);color:white;font:40px sans-serif"><h1>Served inside</h1>"""


def test_the_templates_chromium_shows_a_page(api, agent_sandbox, tools, pictures):
    api.write(agent_sandbox, "/workspace/site/index.html", PAGE)
    api.run(agent_sandbox, "exec python3 -m http.server 8080 --directory /workspace/site", background=True)
    wait_for(lambda: api.run(agent_sandbox, "curl -sf localhost:8080")["exit_code"] == 0, "the site listens")

    def pictures_of_it():
        result = tools.call("browser_navigation", url="http://localhost:8080/")
        # A page that renders too slowly, on a busy machine, is reported without one.
        return [part.data for part in result.content if part.type == "image"]

    (data,) = wait_for(pictures_of_it, "there is a picture of the page")
    picture = base64.b64decode(data)
    (pictures / "browser-tool.png").write_bytes(picture)
    shares = colours(picture)
    # The page's own colour fills it, and letters are drawn upon it.
    assert shares[0][1] == (12, 120, 200) and len(shares) > 5, shares[:5]
