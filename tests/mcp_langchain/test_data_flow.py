"""The data flow of seed 003 with a LangChain agent: a sandbox, its tools over MCP, a web app in it, its page in a browser."""

import asyncio
import struct
import zlib

import pytest
from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from playwright.sync_api import sync_playwright

from scripted import ScriptedModel
from server import Server

# Milliseconds for one step of a browser on a busy machine; nothing is measured by this.
TIMEOUT = 180_000

APP = """
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"<!doctype html><title>Shop</title><body style='margin:0;background:#00aa00'><h1>Open for business</h1>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(body)

ThreadingHTTPServer(("127.0.0.1", 8000), Page).serve_forever()
"""

FETCH = "curl -s --retry 90 --retry-connrefused --retry-delay 1 http://127.0.0.1:8000/"


@pytest.fixture(scope="session")
def server():
    with Server("--auth", "required") as server:
        yield server


@pytest.fixture(scope="session")
def api(server):
    api = server.admin()
    yield api
    api.close()


def test_an_agent_writes_and_starts_a_web_app_that_people_can_open(server, api, tmp_path):
    # 3–7: the agent asks for a sandbox and gets its id and URLs.
    created = api.ok("POST", "/sandboxes/create", {"user_id": "tester"})
    sandbox = created["sandbox_id"]
    api.ok("POST", "/sandboxes/setup-mcp", {"sandbox_id": sandbox, "timeout": 120})
    # 8, 9: it works through the sandbox's tools.
    messages = asyncio.run(work(created["mcp_url"], server.admin_key))
    response = [message.text for message in messages if message.type == "tool"]
    assert any("Open for business" in text for text in response), response
    assert messages[-1].text == "The shop is open."
    assert "Open for business" in api.read(sandbox, "/workspace/shop/app.py")
    # 10: a person views it.
    url = api.ok("POST", "/sandboxes/expose-port", {"sandbox_id": sandbox, "port": 8000})["url"]
    picture = tmp_path / "shop.png"
    title, heading, colour = view_page(url, server.admin_key, picture)
    assert (title, heading) == ("Shop", "Open for business")
    assert colour == "rgb(0, 170, 0)"
    assert is_green(picture), picture
    api.remove(sandbox)


async def work(url, key):
    headers = {"Authorization": f"Bearer {key}"}
    client = MultiServerMCPClient({"sandbox": {"transport": "streamable_http", "url": url, "headers": headers}})
    tools = await client.get_tools()
    model = ScriptedModel(
        turns=[
            [("Write", {"file_path": "/workspace/shop/app.py", "content": APP})],
            [("BashInit", {"session_name": "app", "start_directory": "/workspace/shop"})],
            [("Bash", {"session_name": "app", "command": "python3 app.py", "wait_for_output": False})],
            [("run_command", {"command": FETCH, "timeout": 180})],
            [("register_port", {"port": 8000})],
            "The shop is open.",
        ]
    )
    agent = create_agent(model, tools)
    state = await agent.ainvoke({"messages": [{"role": "user", "content": "Make me a shop."}]})
    return state["messages"]


def view_page(url, key, picture):
    flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
    flags += ["--disable-component-update", "--disable-sync"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=flags, timeout=TIMEOUT)
        page = browser.new_page(extra_http_headers={"Authorization": f"Bearer {key}"})
        page.set_default_timeout(TIMEOUT)
        page.goto(url)
        found = page.title(), page.inner_text("h1"), page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.screenshot(path=str(picture))
        browser.close()
    return found


def is_green(picture):
    """The corner of the picture has the page's colour."""
    data = picture.read_bytes()
    width, _, depth, kind = struct.unpack(">IIBB", data[16:26])
    channels = {2: 3, 6: 4}[kind]
    assert depth == 8
    chunks, at = b"", 8
    while at < len(data):
        length, name = struct.unpack(">I4s", data[at : at + 8])
        chunks += data[at + 8 : at + 8 + length] if name == b"IDAT" else b""
        at += 12 + length
    # The first line's first pixel: no filter changes it, as there is nothing before it.
    row = zlib.decompress(chunks)
    return row[1 : 1 + channels][:3] == b"\x00\xaa\x00" and width > 0
