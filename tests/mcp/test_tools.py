"""Every tool in a real sandbox: what it does, where its limits are, and what it says when it cannot."""

import base64

import pytest

from client import images, listens, text
from waiting import wait_for

# The smallest PNG: one red pixel.
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)


# --- shell


def test_a_session_keeps_its_state(endpoint):
    endpoint.call("BashInit", session_name="kept", start_directory="/workspace")
    first = endpoint.call("Bash", session_name="kept", command="cd /tmp; X=41", description="go to /tmp")
    assert first.structured_content["exit_code"] == 0 and first.structured_content["cwd"] == "/tmp"
    second = endpoint.call("Bash", session_name="kept", command="echo $((X + 1)); false")
    assert "42" in text(second) and second.structured_content["exit_code"] == 1
    assert second.structured_content["duration_seconds"] >= 0
    assert "kept" in text(endpoint.call("BashList"))


def test_a_command_that_takes_too_long_goes_on_and_can_be_stopped(endpoint):
    endpoint.call("BashInit", session_name="slow")
    late = too_long(endpoint, "slow", "echo begun; sleep 4321", "begun")
    assert late.structured_content["is_running"] and "begun" in text(late)
    assert "busy" in endpoint.fails("Bash", session_name="slow", command="echo second").lower()
    assert "begun" in text(endpoint.call("BashView", session_names=["slow"]))
    endpoint.call("BashStop", session_name="slow")
    assert "free again" in text(endpoint.call("Bash", session_name="slow", command="echo free again"))
    endpoint.call("BashStop", session_name="slow", kill_session=True)
    assert "slow" not in text(endpoint.call("BashList"))


def too_long(endpoint, session, command, word):
    """The result of a command that exceeds its timeout. The timeout grows until there is some output, for busy machines."""
    for timeout in (3, 20, 60):
        late = endpoint.call("Bash", session_name=session, command=command, timeout=timeout)
        if word in text(late) or timeout == 60:
            return late
        endpoint.call("BashStop", session_name=session)


def test_a_program_that_asks_is_answered(endpoint):
    endpoint.call("Bash", session_name="asks", command="read -p 'name? ' N; echo hi $N", wait_for_output=False)
    endpoint.call("BashWriteToProcess", session_name="asks", input="Ada")
    # What it says at once is in the answer, what it says later on the screen.
    wait_for(lambda: "hi Ada" in text(endpoint.call("BashView", session_names=["asks"])), "it is answered")


@pytest.mark.parametrize(
    ("command", "seconds", "is_cut"),
    [
        # It may not have begun within the shorter times.
        ("yes", (5, 30, 120), True),
        ("head -c 3000000 /dev/urandom", (120,), True),
        # Of these there is little or nothing to see.
        ("cat /dev/zero | head -c 100000000", (5,), False),
        ("printf '\\033[2J\\033[31mred\\n'", (120,), False),
    ],
)
def test_hostile_output_is_bounded(endpoint, command, seconds, is_cut):
    for timeout in seconds:
        result = endpoint.call("Bash", session_name="flood", command=command, timeout=timeout)
        # 30,000 characters, and some words about it.
        assert len(text(result)) < 40_000
        if result.structured_content["is_cut"] == is_cut:
            break
        endpoint.call("BashStop", session_name="flood")
    assert (" omitted;" in text(result)) == is_cut, text(result)[:1000]
    assert result.structured_content["is_cut"] == is_cut and len(result.structured_content["output"]) < 40_000
    endpoint.call("BashStop", session_name="flood", kill_session=True)


def test_what_is_no_command_comes_back(endpoint):
    for command in ("echo 'unclosed", "if true; then", "cat <<END\nnever ended"):
        result = endpoint.call_any("Bash", session_name="odd", command=command, timeout=60)
        assert not result.structured_content["is_running"], text(result)
    assert "fine" in text(endpoint.call("Bash", session_name="odd", command="echo fine"))


# --- files


def test_read_write_edit(endpoint):
    path = "/workspace/files/a.txt"
    endpoint.call("Write", file_path=path, content="one\r\ntwo\r\nthree\r\n")
    assert "2" in text(endpoint.call("Read", file_path=path)) and "two" in text(endpoint.call("Read", file_path=path, offset=2, limit=1))
    response = text(endpoint.call("Edit", file_path=path, old_string="two", new_string="zwei"))
    assert "-two" in response.replace("\r", "") and "+zwei" in response.replace("\r", "")
    assert text(endpoint.call("read_file", path=path)) == "one\r\nzwei\r\nthree\r\n"
    assert "not" in endpoint.fails("Edit", file_path=path, old_string="absent", new_string="x")


def test_an_edit_keeps_the_mode(endpoint):
    script = "/workspace/files/run.sh"
    endpoint.call("Write", file_path=script, content="#!/bin/sh\necho old\n")
    endpoint.call("run_command", command=f"chmod 755 {script}")
    endpoint.call("Edit", file_path=script, old_string="old", new_string="new")
    assert text(endpoint.call("run_command", command=script)).startswith("new")


def test_a_patch_is_all_or_nothing(endpoint):
    endpoint.call("Write", file_path="/workspace/patch/a.py", content="a = 1\nb = 2\n")
    good = """*** Begin Patch
*** Update File: patch/a.py
@@
-a = 1
+a = 10
*** Add File: patch/b.py
+c = 3
*** End Patch"""
    endpoint.call("apply_patch", input=good)
    assert text(endpoint.call("read_file", path="patch/a.py")) == "a = 10\nb = 2\n"
    bad = good.replace("a = 1\n", "a = nowhere\n").replace("b.py", "c.py")
    endpoint.fails("apply_patch", input=bad)
    assert "c.py" not in text(endpoint.call("LS", path="patch"))


def test_the_editor_can_take_back(endpoint):
    edit = "str_replace_based_edit_tool"
    endpoint.call(edit, command="create", path="/workspace/editor.txt", file_text="one\n")
    endpoint.call(edit, command="insert", path="/workspace/editor.txt", insert_line=1, new_str="two\n")
    endpoint.call(edit, command="str_replace", path="/workspace/editor.txt", old_str="two", new_str="three")
    assert "three" in text(endpoint.call(edit, command="view", path="/workspace/editor.txt"))
    endpoint.call(edit, command="undo_edit", path="/workspace/editor.txt")
    assert "two" in text(endpoint.call("read_file", path="/workspace/editor.txt"))


def test_images_come_as_images(endpoint, api, sandbox):
    encoded = base64.b64encode(PIXEL).decode()
    api.run(sandbox, f"mkdir -p /workspace/media && echo {encoded} | base64 -d > /workspace/media/pixel.png")
    (image,) = images(endpoint.call("Read", file_path="/workspace/media/pixel.png"))
    assert image.mime_type == "image/png" and base64.b64decode(image.data) == PIXEL


def test_searching(endpoint):
    endpoint.call("Write", file_path="/workspace/code/app.py", content="def greet(name):\n    print('hello', name)\n")
    assert "app.py" in text(endpoint.call("Grep", pattern=r"def \w+", path="/workspace/code", include="*.py"))
    assert "app.py" in text(endpoint.call("Glob", pattern="**/*.py", path="/workspace/code"))
    assert "app.py" in text(endpoint.call("ASTGrep", pattern="print($$$ARGS)", path="/workspace/code", language="python"))
    assert "code" in text(endpoint.call("LS", path="/workspace"))
    assert endpoint.fails("Grep", pattern="(unclosed", path="/workspace")


@pytest.mark.parametrize("path", ["/etc/passwd", "../etc/passwd", "out/passwd", "/proc/self/environ", "a\0b"])
def test_no_path_leads_out_of_the_workspace(endpoint, api, sandbox, path):
    api.run(sandbox, "ln -sfn /etc /workspace/out", user="root")
    for tool in ("Read", "Write", "Edit"):
        arguments = {"file_path": path}
        if tool == "Write":
            arguments["content"] = "x"
        if tool == "Edit":
            arguments.update(old_string="root", new_string="toor")
        endpoint.fails(tool, **arguments)
    endpoint.fails("LS", path=path)


def test_files_that_are_no_text(endpoint, api, sandbox):
    created = (
        "mkdir -p /workspace/odd && cd /workspace/odd && head -c 5000 /dev/urandom > binary && truncate -s 100M big "
        "&& : > empty && mkfifo -m 666 pipe && chown -R user: ."
    )
    assert api.run(sandbox, created, user="root")["exit_code"] == 0
    assert "binary" in endpoint.fails("Read", file_path="odd/binary").lower()
    endpoint.fails("Read", file_path="odd/pipe")
    endpoint.fails("Read", file_path="odd")
    assert "empty" in text(endpoint.call("Read", file_path="odd/empty")).lower()
    # It is all zeros, of which none is shown.
    response = endpoint.fails("Read", file_path="odd/big")
    assert "binary data (104857600 bytes)" in response and "\0" not in response and len(response) < 1000, response[:1000]


def test_a_long_file_is_read_in_parts(endpoint, api, sandbox):
    api.run(sandbox, "seq 1 5000000 > /workspace/long.txt")
    first = text(endpoint.call("Read", file_path="long.txt"))
    assert len(first) < 40_000 and "lines 1 to 2000 are shown" in first and "offset=2001" in first, first[-200:]
    assert "4999999" in text(endpoint.call("Read", file_path="long.txt", offset=4_999_998, limit=3))


# --- the rest


def test_todos(endpoint):
    todos = [{"id": str(n), "content": f"task {n}", "status": "pending", "priority": "high"} for n in range(3)]
    todos[0]["status"] = "in_progress"
    endpoint.call("TodoWrite", todos=todos)
    assert "task 2" in text(endpoint.call("TodoRead"))
    todos[1]["status"] = "in_progress"
    assert "progress" in endpoint.fails("TodoWrite", todos=todos)


def test_a_project_a_checkpoint_and_a_database(endpoint):
    endpoint.call("fullstack_project_init", project_name="shop", framework="static")
    assert text(endpoint.call("save_checkpoint", project_directory="/workspace/shop", commit_message="first"))
    assert "sqlite" in text(endpoint.call("get_database_connection", database_type="sqlite")).lower()
    assert endpoint.fails("fullstack_project_init", project_name="x", framework="no-such-thing")


def test_slides(endpoint):
    content = "<html><body><h1>One</h1></body></html>"
    endpoint.call("SlideWrite", presentation_name="talk", slide_number=1, content=content, title="One", description="first")
    endpoint.call("SlideEdit", presentation_name="talk", slide_number=1, old_string="One</h1>", new_string="Eins</h1>")
    listing = text(endpoint.call("run_command", command="cat /workspace/presentations/talk/*"))
    assert "Eins" in listing and '"title"' in listing


@pytest.mark.parametrize(
    ("tool", "arguments", "missing"),
    [
        ("web_search", {"query": "x"}, "no tool_server_url is configured"),
        ("web_batch_search", {"queries": ["x"]}, "no tool_server_url is configured"),
        ("image_search", {"query": "x"}, "no tool_server_url is configured"),
        ("generate_image", {"prompt": "x"}, "no tool_server_url is configured"),
        ("generate_video", {"prompt": "x"}, "no tool_server_url is configured"),
        ("claude_code", {"prompt": "x"}, "npm install -g @anthropic-ai/claude-code"),
        ("codex", {"prompt": "x"}, "npm install -g @openai/codex"),
    ],
)
def test_what_is_not_set_up_says_so(endpoint, tool, arguments, missing):
    assert missing in endpoint.fails(tool, **arguments)


def test_a_page_is_read(endpoint, api, sandbox):
    endpoint.call("Write", file_path="/workspace/site/index.html", content="<h1>Read me</h1><p>in <b>markdown</b></p>")
    endpoint.call("Bash", session_name="site", command="cd /workspace/site && python3 -m http.server 8111 --bind 127.0.0.1 &")
    wait_for(lambda: listens(api, sandbox, 8111), "the site listens")
    response = text(endpoint.call("web_visit", url="http://127.0.0.1:8111/index.html", prompt="what does it say"))
    assert "Read me" in response and "<h1>" not in response


def test_wrong_arguments_are_reported(endpoint):
    assert "file_path" in endpoint.fails("Read")
    assert "arguments" in endpoint.fails("Bash", session_name="x", command=7)


def test_the_last_of_the_inventory(endpoint, api, sandbox):
    """Those no other test here calls."""
    endpoint.call("SlideWrite", presentation_name="more", slide_number=1, content="<h1>One</h1>\n", title="One", description="first")
    patch = "*** Begin Patch\n*** Update File: more/slide_001.html\n@@\n-<h1>One</h1>\n+<h1>Uno</h1>\n*** End Patch"
    endpoint.call("slide_apply_patch", input=patch)
    assert "Uno" in text(endpoint.call("run_command", command="cat /workspace/presentations/more/slide_001.html"))
    api.run(sandbox, f"mkdir -p /workspace/pics && echo {base64.b64encode(PIXEL).decode()} | base64 -d > /workspace/pics/p.png")
    serve = "cd /workspace/pics && python3 -m http.server 8333 --bind 127.0.0.1 &"
    endpoint.call("Bash", session_name="pics", command=serve)
    wait_for(lambda: listens(api, sandbox, 8333), "the site listens")
    (image,) = images(endpoint.call("read_remote_image", url="http://127.0.0.1:8333/p.png"))
    assert base64.b64decode(image.data) == PIXEL
    api.ok("POST", "/sandboxes/setup-mcp", {"sandbox_id": sandbox, "timeout": 120})
    assert "8333" in text(endpoint.call("register_deployment", port=8333))
