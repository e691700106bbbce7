"""VS Code in a browser, as a person uses it."""

from urllib.parse import parse_qs, urljoin, urlsplit, urlunsplit

import httpx

# A cold start of the editor on a busy machine; nothing is measured by this.
TIMEOUT = 180_000


def links(api, server, sandbox, port=9000):
    """The links to a port that carry a token, by the form of the address."""
    signed = api.ok("POST", "/sandboxes/expose-port", {"sandbox_id": sandbox, "port": port})["signed_url"]
    token = parse_qs(urlsplit(signed).query)["sandyard_token"][0]
    host = f"http://{port}-{sandbox}.localhost:{server.port}/?sandyard_token={token}"
    assert urlsplit(signed).path == f"/p/{sandbox}/{port}/"
    return {"path": signed, "host": host}


class Editor:
    """One window with VS Code in it."""

    def __init__(self, page):
        self.page = page
        self.sockets = []
        page.on("websocket", lambda socket: self.sockets.append(socket.url))

    def open(self, url):
        """Follows a link and waits until the folder's files are shown."""
        self.page.goto(url, timeout=TIMEOUT)
        self.page.locator(".monaco-workbench").wait_for(timeout=TIMEOUT)
        self.page.locator(".explorer-folders-view").wait_for(timeout=TIMEOUT)

    def edit(self, name, text):
        """Opens a file by its name in the list of files, writes at its end and saves it."""
        self.page.get_by_role("treeitem", name=name).dblclick(timeout=TIMEOUT)
        lines = self.page.locator(".editor-instance .view-lines").first
        lines.wait_for(timeout=TIMEOUT)
        lines.click()
        self.page.keyboard.press("Control+End")
        self.page.keyboard.type(text)
        self.page.locator(".view-line", has_text=text).first.wait_for(timeout=TIMEOUT)
        self.page.keyboard.press("Control+s")

    def terminal(self, command):
        """Opens a terminal and types a command there."""
        self.page.keyboard.press("F1")
        box = self.page.locator(".quick-input-widget input").first
        box.wait_for(timeout=TIMEOUT)
        box.fill(">Terminal: Create New Terminal")
        self.page.locator(".quick-input-list .monaco-list-row", has_text="Create New Terminal").first.wait_for(timeout=TIMEOUT)
        self.page.keyboard.press("Enter")
        self.page.locator(".terminal-wrapper.active .xterm.focus").first.wait_for(timeout=TIMEOUT)
        self.page.keyboard.type(command)
        self.page.keyboard.press("Enter")


def fetch(server, url, **headers):
    """Asks for a page as a browser would, which finds every name below `localhost` on its own host; cookies are kept."""
    with httpx.Client(timeout=300, trust_env=False) as client:
        for _ in range(5):
            parts = urlsplit(url)
            here = urlunsplit(parts._replace(netloc=f"127.0.0.1:{server.port}"))
            jar = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
            own = {"Host": parts.netloc, **({"Cookie": jar} if jar else {})}
            reply = client.get(here, headers={**headers, **own})
            if not reply.is_redirect:
                return reply
            url = urljoin(url, reply.headers["location"])
    raise AssertionError(f"sent from one place to the next, and now to {url}")
