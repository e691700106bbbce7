"""What the template has, and that it is in order."""

import pytest

# Seconds for one command, on a machine that is busy with other things.
TIMEOUT = 280

PROGRAMS = {
    "git --version": "git version", "rg --version": "ripgrep", "tmux -V": "tmux", "curl --version": "curl",
    "python3 --version": "Python 3", "python3 -m pip --version": "pip", "node --version": "v24.", "npm --version": "1",
    "npx --version": "1", "sudo -n id -un": "root", "chromium --version": "Chromium", "claude --version": "Claude Code",
    "codex --version": "codex-cli", "code-server --version": "4.139.1",
}  # fmt: skip


@pytest.fixture(scope="module")
def sandbox(api):
    sandbox = api.create(template="agent")
    yield sandbox
    api.remove(sandbox)


@pytest.mark.parametrize("command", PROGRAMS)
def test_a_program_runs(api, sandbox, command):
    ran = api.run(sandbox, command, timeout=TIMEOUT)
    assert ran["exit_code"] == 0 and PROGRAMS[command] in ran["stdout"], ran["output"]


def test_a_virtual_environment_can_be_made(api, sandbox):
    ran = api.run(sandbox, "python3 -m venv /tmp/venv && /tmp/venv/bin/pip --version", timeout=TIMEOUT)
    assert ran["exit_code"] == 0, ran["output"]


def test_the_workspace_is_the_users(api, sandbox):
    assert api.run(sandbox, "stat -c %U /workspace")["stdout"] == "user\n"
    assert api.run(sandbox, "find ~ ! -user user")["stdout"] == ""


def test_nothing_is_left_of_how_it_was_made(api, sandbox):
    assert api.run(sandbox, "command -v g++ cc make")["exit_code"] != 0
    remaining = api.run(sandbox, "find / -xdev \\( -name obj.target -o -name _cacache -o -name .npm \\) -print 2>/dev/null")
    assert remaining["stdout"] == "", remaining["stdout"]


def test_chromium_draws_a_page(api, sandbox):
    api.write(sandbox, "/tmp/page.html", "<body style='background:#00f'><h1 id=x>-</h1><script>x.textContent=6*7</script>")
    flags = "--headless --no-sandbox --disable-gpu --user-data-dir=/tmp/profile"
    ran = api.run(sandbox, f"chromium {flags} --dump-dom file:///tmp/page.html", timeout=TIMEOUT)
    assert ran["exit_code"] == 0 and '<h1 id="x">42</h1>' in ran["stdout"], ran["output"][-2000:]
