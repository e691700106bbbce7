"""Several servers behave as one, whichever of them is asked."""

import httpx
import pytest

from sockets import Socket
from waiting import wait_for

SITE = "python3 -m http.server 3000 --directory /home/user"


@pytest.fixture(params=["made at a, used at b", "made at c, used at a", "made at a, used at c"])
def pair(request, apis):
    """A sandbox, the caller that made it and the caller of another server."""
    a, b, c = apis
    maker, user = {"made at a, used at b": (a, b), "made at c, used at a": (c, a), "made at a, used at c": (a, c)}[
        request.param
    ]
    sandbox = maker.create()
    yield sandbox, maker, user
    maker.remove(sandbox)


def test_all_three_know_each_other(cluster):
    all_urls = {cluster.a.url, cluster.b.url, cluster.c.url}

    def known_nodes(api):
        return {node["url"] for node in api.ok("GET", "/nodes")["nodes"]}

    for server in (cluster.a, cluster.b, cluster.c):
        api = server.api(cluster.a.admin_key)
        # Each says every few seconds that it is there; one that had no time for that is back with the next.
        wait_for(lambda api=api: known_nodes(api) == all_urls, lambda api=api: f"{server.url} knows all three: {known_nodes(api)}")
        api.close()


def test_commands_and_files_go_through_another_server(pair):
    sandbox, maker, user = pair
    ran = user.run(sandbox, "echo hello; exit 3")
    assert (ran["exit_code"], ran["stdout"]) == (3, "hello\n")
    user.write(sandbox, "/home/user/there", "and back")
    assert maker.read(sandbox, "/home/user/there") == "and back"
    content = bytes(range(256)) * 40_000
    form = {"sandbox_id": sandbox, "file_path": "/home/user/large"}
    assert user.http.post("/sandboxes/upload-file", data=form, files={"file": ("f", content)}).status_code == 200
    reply = user.post("/sandboxes/download-file", {**form, "format": "stream"})
    assert reply.content == content


def test_a_command_is_streamed_through_another_server(pair):
    sandbox, _, user = pair
    with Socket(f"{user.url.replace('http', 'ws', 1)}/sandboxes/{sandbox}/exec") as socket:
        socket.send('{"command": "read x; echo got $x"}')
        assert '"start"' in socket.recv()
        socket.send(b"input\n")
        assert socket.recv() == b"\x01got input\n"
        assert '"exit_code":0' in socket.recv().replace(" ", "")


def test_a_preview_goes_through_another_server(pair):
    sandbox, _, user = pair
    user.write(sandbox, "/home/user/page.txt", "a page")
    user.run(sandbox, SITE, background=True)
    url = f"{user.url}/p/{sandbox}/3000/page.txt"
    wait_for(lambda: httpx.get(url, timeout=120, trust_env=False).status_code == 200, "the page is there")
    assert httpx.get(url, timeout=120, trust_env=False).text == "a page"


def test_pause_wake_and_delete_through_another_server(pair):
    sandbox, maker, user = pair
    assert user.pause(sandbox)["status"] == "paused"
    assert maker.status(sandbox) == "paused"
    assert user.run(sandbox, "echo awake")["output"] == "awake\n"
    assert len(maker.events(sandbox, "woken")) == 1
    user.remove(sandbox)
    assert maker.post("/sandboxes/connect", {"sandbox_id": sandbox}).status_code == 404


def test_a_schedule_made_at_one_server_is_kept_by_its_node(pair):
    sandbox, maker, user = pair
    user.ok("POST", "/sandboxes/schedule-timeout", {"sandbox_id": sandbox, "timeout": 1})
    wait_for(lambda: maker.status(sandbox) == "paused", "it is paused")
    assert len(maker.events(sandbox, "paused")) == 1


def test_one_list_for_all(apis):
    created = {api.create(user_id="listed") for api in apis}
    for api in apis:
        assert {one["sandbox_id"] for one in api.all(owner="listed")} == created
    for sandbox in created:
        apis[0].remove(sandbox)


def test_a_key_made_at_one_server_opens_all(cluster, apis):
    admin = cluster.a.admin()
    for server in (cluster.b, cluster.c):
        api = server.api(cluster.a.admin_key)
        assert api.get("/users").status_code == 200
        api.close()
    admin.close()


def test_a_node_that_is_down_says_so_and_its_sandboxes_come_back(cluster, apis):
    a, _, c = apis
    sandbox = c.create()
    c.write(sandbox, "/home/user/kept", "kept")
    cluster.c.kill()
    reply = a.post("/sandboxes/run-command", {"sandbox_id": sandbox, "command": "true"})
    assert reply.status_code in (502, 503), reply.text
    assert reply.json()["code"] and reply.json()["detail"]
    assert a.status(sandbox) == "running"
    cluster.c.start()
    wait_for(
        lambda: a.post("/sandboxes/read-file", {"sandbox_id": sandbox, "path": "/home/user/kept"}).status_code == 200,
        "it is reached through another server again",
    )
    c.remove(sandbox)
