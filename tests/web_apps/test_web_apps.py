"""A page that a sandbox serves works in a browser as it does on one's own machine: scripts, styles, requests, WebSockets."""

from waiting import wait_for

VITE, NEXT, CHAT = 5173, 3000, 8080


def shows(page, selector, text):
    """Waits until an element has a text."""
    content = f"document.querySelector('{selector}')?.innerText"
    wait_for(lambda: page.evaluate(content) == text, lambda: f"{selector} is {text!r}: {page.evaluate(content)!r}, {page.failures()}")


def listens(sandyard, api, sandbox, port):
    """Waits until a program listens, by any address that it likes."""
    wait_for(lambda: str(port) in sandyard("ports", "ls", sandbox).split(), lambda: sandyard("logs", sandbox))


def test_vite(server, api, sandyard, make_app, open_app):
    # Vite answers only to names that it knows: those below `localhost`, and what this variable names.
    names = {} if server.domain == "localhost" else {"__VITE_ADDITIONAL_SERVER_ALLOWED_HOSTS": f".{server.domain}"}
    sandbox = make_app("vite", "npx vite", packages=True, **names)
    listens(sandyard, api, sandbox, VITE)
    page = open_app(sandbox, VITE)
    shows(page, "#message", "Hello from a module")
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(1, 2, 3)"
    assert page.evaluate("document.querySelector('img').naturalWidth") == 16

    # A changed module is exchanged in the page, which is not loaded again.
    page.evaluate("window.isTheSamePage = true")
    api.write(sandbox, "/home/user/app/src/message.js", "export const message = 'Changed while it runs'\n")
    shows(page, "#message", "Changed while it runs")
    assert page.evaluate("window.isTheSamePage") is True


def test_absolute_assets_links_and_requests(sandyard, api, make_app, open_app):
    sandbox = make_app("next_like", "node server.mjs")
    listens(sandyard, api, sandbox, NEXT)
    page = open_app(sandbox, NEXT)
    shows(page, "#greeting", "Hello from /api/greeting")
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(1, 2, 3)"
    # Cookies and storage are those of the application.
    assert page.evaluate("localStorage.getItem('visits') + document.cookie") == "1session=set-by-the-server"
    # A form that the server accepts only from its own origin, answered by an absolute redirect.
    page.evaluate("document.querySelector('form').submit()")
    shows(page, "h1", "Thanks")
    page.evaluate("document.querySelector('a[href=\"/\"]').click()")
    shows(page, "#greeting", "Hello from /api/greeting")
    assert page.evaluate("localStorage.getItem('visits')") == "2"


def test_websocket(sandyard, api, make_app, open_app):
    sandbox = make_app("chat", "node server.mjs", packages=True)
    listens(sandyard, api, sandbox, CHAT)
    first, second = open_app(sandbox, CHAT), open_app(sandbox, CHAT)
    for page in (first, second):
        shows(page, "#status", "connected")
    first.evaluate("say('hello to all')")
    for page in (first, second):
        shows(page, "#said", "hello to all")
