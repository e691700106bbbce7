"""VS Code opened in real Chromium through the preview."""

import secrets

import pytest

from editor import Editor, fetch, links
from picture import is_blank
from waiting import wait_for

PORT = 9000


@pytest.mark.parametrize("form", ["path", "host"])
def test_a_file_is_edited_and_a_command_typed(api, server, make, page, pictures, form):
    sandbox = make()
    api.write(sandbox, "/workspace/notes.txt", "first line\n")
    editor = Editor(page)
    editor.open(links(api, server, sandbox)[form])
    # The link's token is not left where it could be copied from.
    assert "sandyard_token" not in page.url

    mark = secrets.token_hex(8)
    editor.edit("notes.txt", f"written in the editor {mark}")
    wait_for(lambda: mark in api.read(sandbox, "/workspace/notes.txt"), "the file is saved")
    assert api.read(sandbox, "/workspace/notes.txt") == f"first line\nwritten in the editor {mark}"

    editor.terminal(f"whoami > /workspace/who; pwd > /workspace/where; expr 6 '*' 7 > /workspace/{mark}")
    answer = {"sandbox_id": sandbox, "path": f"/workspace/{mark}"}
    wait_for(lambda: api.post("/sandboxes/read-file", answer).status_code == 200, "the command ran", 180)
    wait_for(lambda: api.read(sandbox, f"/workspace/{mark}") == "42\n", "the command wrote")
    assert api.read(sandbox, "/workspace/who") == "user\n"
    assert api.read(sandbox, "/workspace/where") == "/workspace\n"
    # New files appear automatically: the editor is notified over its WebSocket.
    page.get_by_role("treeitem", name=mark).wait_for()
    assert editor.sockets

    picture = page.screenshot(path=pictures / f"vscode-{form}.png")
    assert not is_blank(picture)
    assert page.locator(".view-line", has_text="first line").count() > 0


def test_an_unused_one_is_not_running(api, make):
    sandbox = make()
    assert "code-server" not in api.run(sandbox, "ps -ef", user="root")["output"]


def test_it_listens_only_inside_the_sandbox(api, server, make):
    sandbox = make()
    reply = fetch(server, links(api, server, sandbox)["host"], Accept="text/html")
    assert reply.status_code == 200, reply.text[:300]
    sockets = api.run(sandbox, "cat /proc/net/tcp /proc/net/tcp6", user="root")["stdout"]
    listening = [line.split()[1] for line in sockets.splitlines() if ":2328 " in line.split("rem")[0] and " 0A " in line]
    assert listening == ["0100007F:2328"], sockets


@pytest.mark.parametrize("form", ["path", "host"])
@pytest.mark.parametrize("is_public", [False, True], ids=["private", "public"])
def test_requests_without_credentials_are_refused(api, server, make, form, is_public):
    sandbox = make()
    if is_public:
        # Asked or not, this port stays closed; a server may also refuse to be asked.
        reply = api.request("PUT", f"/sandboxes/{sandbox}/ports/{PORT}", json={"public": True})
        assert reply.status_code < 500, reply.text
    url = links(api, server, sandbox)[form].partition("?")[0]
    for headers in ({"Accept": "text/html"}, {"Accept": "*/*"}, {"X-Sandyard-Token": "guessed"}):
        reply = fetch(server, url, **headers)
        assert reply.status_code in (401, 403), reply.text[:300]
        assert "workbench" not in reply.text and "code-server" not in reply.text
    assert "entry.js" not in api.run(sandbox, "ps -ef", user="root")["output"], "nobody may start it either"


def test_a_token_for_another_port_is_none_for_this(api, server, make):
    sandbox = make()
    other = links(api, server, sandbox, port=3000)["path"].replace("/3000/", f"/{PORT}/")
    assert fetch(server, other).status_code in (401, 403)


@pytest.mark.parametrize("accept, kind", [("text/html,*/*", "text/html"), ("application/json", "application/json")])
def test_a_template_without_it_says_how_to_get_one(api, server, make, accept, kind):
    sandbox = make(template="host")
    reply = fetch(server, links(api, server, sandbox)["path"], Accept=accept)
    assert reply.status_code == 404, reply.text[:300]
    assert reply.headers["content-type"].startswith(kind)
    assert "templates/agent/build" in reply.text
