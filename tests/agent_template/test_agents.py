"""The real programs of Claude Code and Codex do a task, and never see the key they do it with."""

import json
import secrets
import shlex

import httpx
import pytest

from tools import Tools

CLAUDE = "claude -p 'Please do the task.' --output-format stream-json --verbose --allowedTools Bash"
CODEX = "codex exec --json --skip-git-repo-check 'Please do the task.'"


def claude_says(output):
    """The last words, and all events."""
    events = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return next(event["result"] for event in events if event["type"] == "result"), events


def codex_says(output):
    events = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    done = [event["item"] for event in events if event["type"] == "item.completed"]
    return [item["text"] for item in done if item["type"] == "agent_message"][-1], events


AGENTS = {
    "claude": (CLAUDE, claude_says, "/v1/messages", "x-api-key", "{}", "ANTHROPIC_API_KEY", "anthropic"),
    "codex": (CODEX, codex_says, "/v1/responses", "authorization", "Bearer {}", "OPENAI_API_KEY", "openai"),
}


@pytest.mark.parametrize("agent", AGENTS)
def test_a_task_is_done(api, model, agent_sandbox, agent):
    program, states, path, header, form, variable, key = AGENTS[agent]
    mark = secrets.token_hex(8)
    model.task(f"printf {mark} > /workspace/{agent}.txt && echo made-$((40 + 2))", "The file is there:")

    ran = api.run(agent_sandbox, f"cd /workspace && {program} < /dev/null", timeout=290)
    assert ran["exit_code"] == 0, ran["output"][-3000:]
    parts, events = states(ran["stdout"])
    assert parts.startswith("The file is there:") and "made-42" in parts, parts
    assert len(events) >= 3, events
    assert api.read(agent_sandbox, f"/workspace/{agent}.txt") == mark

    # The host got the key; the sandbox has a placeholder, and got nothing else back.
    sent = [request.headers[header] for request in model.requests_for(path)]
    assert len(sent) >= 2 and set(sent) == {form.format(model.keys[key])}, len(sent)
    held = api.run(agent_sandbox, f"printenv {variable}")["stdout"].strip()
    assert held and held != model.keys[key]
    found = api.run(agent_sandbox, f"grep -rl {model.keys[key]} /home/user /workspace /tmp /etc", user="root")
    assert found["stdout"] == "", found["stdout"]


@pytest.mark.parametrize("name", ["Read", "BashView"])
def test_claude_code_shows_its_model_what_the_tools_of_the_sandbox_say(server, api, model, agent_sandbox, name):
    """It shows nothing but the structured part of an answer that has one."""
    mark = secrets.token_hex(8)
    api.write(agent_sandbox, "/workspace/said.txt", f"the file says {mark}\n")
    request_log = httpx.get(f"{server.e2b_url}/sandboxes/{agent_sandbox}", headers={"X-API-Key": server.admin_key}, timeout=60)
    token = request_log.json()["envdAccessToken"]
    tools = Tools(api, agent_sandbox)
    # The first connection from outside starts the tool server.
    tools.call("Bash", session_name="main", command="cat /workspace/said.txt")
    tools.close()

    arguments = {"Read": {"file_path": "/workspace/said.txt"}, "BashView": {"session_names": ["main"]}}[name]
    model.task("true", "It was told:", tool=(f"mcp__box__{name}", arguments))
    box = {"type": "http", "url": "http://127.0.0.1:6060/mcp", "headers": {"Authorization": f"Bearer {token}"}}
    config = shlex.quote(json.dumps({"mcpServers": {"box": box}}))
    program = CLAUDE.replace("--allowedTools Bash", f"--allowedTools mcp__box__{name} --strict-mcp-config --mcp-config {config}")
    # The model receives all tools at once, so that the stand-in need not search for them.
    ran = api.run(agent_sandbox, f"cd /workspace && ENABLE_TOOL_SEARCH=false {program} < /dev/null", timeout=290)
    assert ran["exit_code"] == 0, ran["output"][-3000:]
    parts, _ = claude_says(ran["stdout"])
    assert parts.startswith("It was told:") and f"the file says {mark}" in parts, parts
    results = [request.body["messages"][-1]["content"] for request in model.requests_for("/v1/messages")]
    assert any(f"the file says {mark}" in json.dumps(result) for result in results), results


@pytest.mark.parametrize("agent", AGENTS)
def test_without_the_secret_it_is_refused(api, model, make, agent):
    """Else the test above would mean nothing."""
    program, states, path, _, _, variable, _ = AGENTS[agent]
    model.task("touch /workspace/never", "never")
    sandbox = make(env={"ANTHROPIC_BASE_URL": model.url, variable: "a-key-of-ones-own", "CLAUDE_CODE_MAX_RETRIES": "0"})
    api.write(sandbox, "/tmp/authority.pem", model.authority.pem)
    trusted = "NODE_EXTRA_CA_CERTS=/tmp/authority.pem SSL_CERT_FILE=/tmp/authority.pem"
    api.run(sandbox, f"sed -i 's#https://api.openai.com#{model.url}#' ~/.codex/config.toml")
    ran = api.run(sandbox, f"cd /workspace && {trusted} timeout 250 {program} < /dev/null", timeout=280)
    assert ran["exit_code"] != 0, ran["output"][-2000:]
    assert model.requests_for(path), "it did not even ask"
    assert api.run(sandbox, "test -e /workspace/never")["exit_code"] != 0


def test_their_files_hold_no_credentials(api, make):
    sandbox = make()
    files = "~/.claude/settings.json ~/.claude.json ~/.codex/config.toml"
    displayed = api.run(sandbox, f"cat {files}; ls -A ~/.claude ~/.codex")["stdout"]
    assert "DISABLE_AUTOUPDATER" in displayed and "env_key" in displayed
    assert not any(word in displayed for word in ("auth.json", ".credentials.json", "sk-", "apiKey"))
