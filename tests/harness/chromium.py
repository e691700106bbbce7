"""Chromium on this host, driven over the DevTools protocol."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import httpx

from program import environment
from sockets import Socket
from waiting import wait_for


class Chromium:
    """A headless browser with an empty profile that trusts every certificate.

    `names` are host patterns that lead to this host, beside those below `localhost`.
    """

    def __init__(self, *names):
        self._profile = Path(tempfile.mkdtemp(prefix="sandyard-test-chromium-", dir="/var/tmp"))
        rules = ",".join(f"MAP {name} 127.0.0.1" for name in names)
        self._flags = [
            *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
            *("--disable-background-networking", "--disable-component-update", "--no-proxy-server", "--ignore-certificate-errors"),
            *("--remote-debugging-port=0", f"--user-data-dir={self._profile}", f"--host-resolver-rules={rules}"),
        ]

    def __enter__(self):
        self._log = (self._profile / "log").open("wb")
        # A session of its own, so that all its processes can be ended together.
        self._process = subprocess.Popen(
            ["chromium", *self._flags, "about:blank"],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        try:
            self._port = int(wait_for(self._announced, self._tail).split()[0])
        except BaseException:
            self.__exit__()
            raise
        return self

    def _announced(self):
        assert self._process.poll() is None, self._tail()
        file = self._profile / "DevToolsActivePort"
        text = file.read_text() if file.exists() else ""
        return text if text.count("\n") else None

    def _tail(self):
        return f"Chromium listens; its log:\n{(self._profile / 'log').read_text(errors='replace')[-2000:]}"

    def open(self, url, is_watched=False):
        """Opens a page in a new tab and waits until it is loaded. If it `is_watched`, it remembers what failed in it."""
        tab = httpx.put(f"http://127.0.0.1:{self._port}/json/new", timeout=120, trust_env=False).json()
        page = Page(tab["webSocketDebuggerUrl"])
        if is_watched:
            page.watch()
        page.navigate(url)
        return page

    def __exit__(self, *_):
        # Its profile is thrown away, so nothing need be written back.
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._log.close()
        shutil.rmtree(self._profile, ignore_errors=True)


class Page:
    """A tab."""

    def __init__(self, url):
        self._socket = Socket(url, max_size=None)
        self._last = 0
        self._failures = []

    def call(self, method, **parameters):
        self._last += 1
        self._socket.send(json.dumps({"id": self._last, "method": method, "params": parameters}))
        while (message := json.loads(self._socket.recv())).get("id") != self._last:
            self._failures += _failure(message.get("method"), message["params"])
        assert "error" not in message, message
        return message["result"]

    def watch(self):
        """From now on remembers requests, scripts and WebSockets that fail."""
        for domain in ("Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def failures(self):
        """What failed so far in a watched page."""
        self.evaluate("0")
        return self._failures

    def navigate(self, url):
        reply = self.call("Page.navigate", url=url)
        assert "errorText" not in reply, reply
        wait_for(lambda: self.evaluate("document.readyState") == "complete" and self.url != "about:blank", f"{url} is loaded")

    @property
    def url(self):
        return self.evaluate("location.href")

    def evaluate(self, script):
        """The value of an expression in the page; that of a promise once it is there."""
        reply = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in reply, reply
        return reply["result"].get("value")

    def cookies(self):
        """The cookies that the browser would send for this page, with their attributes."""
        return self.call("Network.getCookies")["cookies"]

    def close(self):
        self._socket.__exit__()


def _failure(event, parameters):
    """What an event of the page tells about a failure: a list with one entry or none."""
    match event:
        case "Network.responseReceived" if parameters["response"]["status"] >= 400:
            return [(parameters["response"]["url"], parameters["response"]["status"])]
        # A request that the page itself gave up, as when it is left, has not failed.
        case "Network.loadingFailed" if not parameters.get("canceled"):
            return [(parameters["type"], parameters["errorText"])]
        case "Network.webSocketFrameError":
            return [("WebSocket", parameters["errorMessage"])]
        case "Runtime.exceptionThrown":
            return [("exception", parameters["exceptionDetails"])]
        case "Log.entryAdded" if parameters["entry"]["level"] == "error":
            return [("log", parameters["entry"]["text"])]
    return []
