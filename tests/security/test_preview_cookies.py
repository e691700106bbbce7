"""A page that a sandbox serves runs in the browser of the person who views it: it reaches neither the API nor another sandbox."""

import json
from pathlib import Path

import httpx
import pytest

from chromium import Chromium
from server import Server

DOMAIN, PORT = "box.test", 3000
# A name by which the browser knows the server, and the server does not know itself.
REMOTE = "server.test"
SITE = Path(__file__).parent / "programs" / "logging_site.py"
LOG = "/home/user/requests"
CLIENT = {"timeout": 120, "trust_env": False}

# Tries to read URLs in every way a page has; returns what could be read. What cannot be read may still have been sent.
ATTACK = """
async (targets, sockets) => {
  const read = [];
  for (const url of targets) {
    for (const mode of ["cors", "no-cors"]) {
      for (const [method, type] of [["GET"], ["POST", "text/plain"], ["POST", "application/json"], ["PUT", "application/json"]]) {
        const options = {method, mode, credentials: "include"};
        if (type) Object.assign(options, {body: '{"user_id": "page", "public": true}', headers: {"content-type": type}});
        try {
          const reply = await fetch(url, options);
          const text = await reply.text();
          if (reply.ok || text) read.push([url, method, mode, reply.status, text.slice(0, 200)]);
        } catch (error) {}
      }
    }
  }
  for (const url of sockets) {
    await new Promise((done) => {
      const socket = new WebSocket(url.replace("http", "ws"));
      socket.onmessage = (event) => { read.push([url, "websocket", String(event.data).slice(0, 200)]); socket.close(); done(); };
      socket.onopen = () => read.push([url, "websocket", "open"]);
      socket.onerror = socket.onclose = done;
    });
  }
  return read;
}
"""

# The same in a frame whose origin is opaque.
ATTACK_FROM_FRAME = """
(targets, sockets) => new Promise((done) => {
  addEventListener("message", (event) => done(event.data), {once: true});
  const frame = document.createElement("iframe");
  frame.sandbox = "allow-scripts allow-forms";
  const script = `(%s)(${JSON.stringify(targets)}, ${JSON.stringify(sockets)}).then((read) => parent.postMessage(read, "*"))`;
  frame.srcdoc = "<script>" + script + "</scr" + "ipt>";
  document.body.append(frame);
})
""" % ATTACK.replace("`", "\\`").replace("${", "\\${")

# Embeds a page of another origin and looks into the frame; returns what it saw there.
EMBED = """
(url) => new Promise((done) => {
  const frame = document.createElement("iframe");
  frame.onload = () => {
    try { done(frame.contentWindow.document.body.innerText); } catch (error) { done(null); }
  };
  frame.src = url;
  document.body.append(frame);
})
"""

# Sends a form, which needs no permission of the other side, and waits until the answer is there.
SEND_FORM = """
(url) => new Promise((done) => {
  const frame = document.createElement("iframe");
  frame.name = "answers";
  document.body.append(frame);
  const form = document.createElement("form");
  Object.assign(form, {method: "POST", action: url, target: "answers"});
  document.body.append(form);
  frame.onload = () => done(true);
  form.submit();
})
"""


@pytest.fixture(scope="module")
def chromium():
    with Chromium(f"*.{DOMAIN}", DOMAIN, REMOTE) as chromium:
        yield chromium


class Victims:
    """A server with two sandboxes that serve pages: a hostile one and another one."""

    def __init__(self, server, api):
        self.server, self.api = server, api
        self.hostile, self.other = self._sandbox("a hostile page"), self._sandbox("secret of the other")

    def _sandbox(self, text):
        sandbox = self.api.create()
        self.api.write(sandbox, "/home/user/site.py", SITE.read_text())
        self.api.run(sandbox, f"exec python3 /home/user/site.py {PORT} '{text}' {LOG}", background=True)
        probe = f"curl -s --retry 90 --retry-connrefused --retry-delay 1 http://127.0.0.1:{PORT}/started"
        assert self.api.run(sandbox, probe)["stdout"] == text
        return sandbox

    def base(self, sandbox, domain):
        scheme = "https" if self.server.is_tls else "http"
        return f"{scheme}://{PORT}-{sandbox}.{domain}:{self.server.port}"

    def link(self, sandbox, domain, path="/"):
        """A signed link by the host of a domain."""
        url = self.api.ok("POST", "/sandboxes/expose-port", {"sandbox_id": sandbox, "port": PORT})["signed_url"]
        return f"{self.base(sandbox, domain)}{path}?{url.partition('?')[2]}"

    def methods(self, sandbox, path):
        """Methods of the requests for a path that reached a site."""
        requests = map(json.loads, self.api.read(sandbox, LOG).splitlines())
        return [request[0] for request in requests if request[1] == path]

    def state(self):
        """What a page must not be able to change."""
        ids = {one["sandbox_id"] for one in self.api.all()}
        ports = [self.api.ok("GET", f"/sandboxes/{sandbox}/ports/{PORT}")["public"] for sandbox in sorted(ids)]
        return ids, ports

    def api_targets(self):
        """Routes of the API, by every name it has here, and by the host of the hostile sandbox itself."""
        names = ["127.0.0.1", "localhost", DOMAIN, f"api.{DOMAIN}"]
        routes = ["/sandboxes", "/sandboxes/create", f"/sandboxes/{self.other}/ports/{PORT}", "/e2b/v2/sandboxes"]
        return [f"http://{name}:{self.server.port}{route}" for name in names for route in routes]

    def socket_targets(self):
        return [f"http://{name}:{self.server.port}/sandboxes/{self.other}/exec" for name in ("127.0.0.1", DOMAIN)]


@pytest.fixture(scope="module")
def open_victims():
    """A server that asks nobody on this host for credentials: the browser's user has all rights without any cookie."""
    with Server(DOMAIN=DOMAIN) as server:
        api = server.api()
        yield Victims(server, api)
        api.close()


@pytest.fixture(scope="module")
def private_victims():
    """A server that asks everybody for credentials, over TLS as it should be; the browser has cookies for previews."""
    with Server("--auth", "required", "--tls-self-signed", DOMAIN=DOMAIN) as server:
        api = server.admin()
        yield Victims(server, api)
        api.close()


@pytest.fixture(scope="module")
def remote_victims():
    """A server without a domain, by a name that is not this host's: it cannot lead a browser to the host of a port."""
    with Server("--auth", "required") as server:
        api = server.admin()
        yield Victims(server, api)
        api.close()


def call(page, script, *arguments):
    return page.evaluate(f"({script})({', '.join(map(json.dumps, arguments))})")


@pytest.mark.parametrize("form", ["localhost", DOMAIN, "path"])
@pytest.mark.parametrize("script", [ATTACK, ATTACK_FROM_FRAME], ids=["page", "frame"])
def test_a_page_does_not_reach_the_api_of_an_open_server(chromium, open_victims, form, script):
    victims = open_victims
    base = f"{victims.server.url}/p/{victims.hostile}/{PORT}" if form == "path" else victims.base(victims.hostile, form)
    page = chromium.open(f"{base}/index")
    assert page.evaluate("document.body.innerText") == "a hostile page"
    if script == ATTACK and form != "path":
        # The attack does read what it may read: its own site.
        read = call(page, script, [f"{base}/own"], [f"{base}/own"])
        assert {one[1] for one in read} == {"GET", "POST", "PUT", "websocket"}, read
    before = victims.state()
    targets = victims.api_targets()
    # By its path another sandbox's port may be asked by any page that knows its id, as a link or picture would; not read.
    targets += [f"{victims.server.url}/p/{victims.other}/{PORT}/strict"]
    assert call(page, script, targets, victims.socket_targets()) == []
    assert victims.state() == before
    page.close()


@pytest.mark.parametrize("domain", ["localhost", DOMAIN])
@pytest.mark.parametrize("kind", ["open", "private"])
def test_a_page_does_not_reach_another_sandbox(chromium, open_victims, private_victims, kind, domain):
    """Below a domain of one's own all previews are "same site" to a browser, so that SameSite keeps no cookie back."""
    victims = {"open": open_victims, "private": private_victims}[kind]
    # The person who looks has opened both before, and so has a cookie for each.
    own = chromium.open(victims.link(victims.other, domain, "/by-its-owner"))
    assert own.evaluate("document.body.innerText") == "secret of the other"
    page = chromium.open(victims.link(victims.hostile, domain))
    target = f"{victims.base(victims.other, domain)}/attacked"
    for script in (ATTACK, ATTACK_FROM_FRAME):
        assert call(page, script, [target], [target]) == []
    call(page, SEND_FORM, target)
    # Over plain HTTP browsers do not say which site asks for a picture or a script, except below `localhost`: such a GET looks
    # like one of the other site's own page. Its answer is not shown to the page that asked.
    may_arrive = {"GET"} if kind == "open" and domain == DOMAIN else set()
    assert set(victims.methods(victims.other, "/attacked")) <= may_arrive
    # A frame may show the other page, as a link may lead there; the page around it sees nothing of it.
    assert call(page, EMBED, f"{victims.base(victims.other, domain)}/embedded") is None
    # The cookie still opens the preview for its own page.
    assert own.evaluate("fetch('/own', {method: 'POST'}).then((reply) => reply.text())") == "secret of the other"
    for one in (own, page):
        one.close()


@pytest.mark.parametrize("domain", ["localhost", DOMAIN])
def test_a_page_does_not_see_the_cookie_that_opens_it(chromium, private_victims, domain):
    page = chromium.open(private_victims.link(private_victims.hostile, domain))
    assert "sandyard_token" not in page.url
    (cookie,) = [cookie for cookie in page.cookies() if cookie["name"] == "sandyard_preview"]
    assert cookie["httpOnly"] and cookie["sameSite"] == "Lax"
    # A host-only cookie: a domain that it is for would begin with a dot.
    assert cookie["domain"] == f"{PORT}-{private_victims.hostile}.{domain}" and cookie["path"] == "/"
    seen = page.evaluate("document.cookie + document.documentElement.outerHTML + document.referrer")
    assert cookie["value"] and cookie["value"] not in seen
    assert "sandyard" not in page.evaluate("document.cookie")
    requests = private_victims.api.read(private_victims.hostile, LOG)
    assert cookie["value"] not in requests and "sandyard_preview" not in requests
    page.close()


def by_path(victims, server):
    """A signed link below the API's own host."""
    token = victims.link(victims.hostile, DOMAIN).partition("?")[2]
    return f"{server}/p/{victims.hostile}/{PORT}/?{token}"


def test_a_browser_is_led_from_the_path_to_the_host_of_the_port(chromium, private_victims):
    page = chromium.open(by_path(private_victims, private_victims.server.url))
    assert page.evaluate("document.body.innerText") == "a hostile page"
    assert page.evaluate("origin") == private_victims.base(private_victims.hostile, DOMAIN)
    assert "sandyard" not in page.evaluate("document.cookie") and "sandyard_token" not in page.url
    page.close()


def test_a_page_opened_by_its_path_has_no_cookies_of_the_server(chromium, remote_victims):
    """The path is on the API's own host: the page there has an origin of its own, without cookies and storage."""
    page = chromium.open(by_path(remote_victims, f"http://{REMOTE}:{remote_victims.server.port}"))
    assert page.evaluate("document.body.innerText") == "a hostile page"
    assert page.evaluate("origin") == "null"
    blocked = "(() => { try { return document.cookie + localStorage.length } catch (error) { return error.name } })()"
    assert page.evaluate(blocked) == "SecurityError"
    page.close()


def parsed(cookie):
    """The name and value of a Set-Cookie header, and its attributes with their names in lower case."""
    pair, *attributes = [part.strip() for part in cookie.split(";")]
    pairs = (attribute.partition("=") for attribute in attributes)
    return pair, {name.lower(): value for name, _, value in pairs}


@pytest.mark.parametrize("kind", ["open", "private"])
def test_attributes_of_every_cookie_that_a_preview_sets(open_victims, private_victims, kind):
    victims = {"open": open_victims, "private": private_victims}[kind]
    client = {**CLIENT, "verify": victims.server.trust()}
    secure = {"secure": ""} if victims.server.is_tls else {}
    token = victims.link(victims.hostile, DOMAIN).partition("sandyard_token=")[2]
    prefix = f"/p/{victims.hostile}/{PORT}"
    host = {"Host": f"{PORT}-{victims.hostile}.{DOMAIN}:{victims.server.port}"}
    for base, headers, path in ((victims.server.url + prefix, {}, prefix), (victims.server.url, host, "/")):
        navigation = {**headers, "Accept": "text/html"}
        opened = httpx.get(f"{base}/", params={"sandyard_token": token}, headers=navigation, **client)
        assert opened.status_code == 303
        ((pair, attributes),) = map(parsed, opened.headers.get_list("set-cookie"))
        assert pair == f"sandyard_preview={token}"
        assert attributes == {"path": path, "httponly": "", "samesite": "Lax", **secure}
        assert opened.headers["referrer-policy"] == "no-referrer" and opened.headers["cache-control"] == "no-store"
        # What the site sets stays on its host and below its path, and it sets no cookie of ours.
        displayed = httpx.get(f"{base}/", headers={**headers, "X-Sandyard-Token": token}, **client)
        assert displayed.status_code == 200
        ((pair, attributes),) = map(parsed, displayed.headers.get_list("set-cookie"))
        assert (pair, attributes) == ("of_the_site=1", {"path": path})
