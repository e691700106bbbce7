"""Browsers have lists of authorities of their own. In a sandbox they trust the gateway all the same."""

import httpx
import pytest

from guest import Guest

_HEADLESS = "chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir=$(mktemp -d)"


@pytest.fixture(scope="module")
def bound(api, world):
    """A sandbox with a secret bound to api.test, so that the gateway ends TLS for that host."""
    api.ok("PUT", "/secrets/browsed", {"value": "value-of-browsed", "hosts": ["api.test"], "is_shared": True})
    with Guest(api, world, secrets={"KEY": "browsed"}) as guest:
        yield guest
    api.delete("/secrets/browsed")


def use(guest, tool, **args):
    """One of the sandbox's tools, in one line."""
    url = guest.api.ok("GET", f"/sandboxes/{guest.id}/urls")["mcp_url"]
    return httpx.post(url, json={"tool": tool, "args": args}, timeout=300).raise_for_status().json()


def test_the_browser_tools_open_a_host_with_a_secret(world, bound):
    page = use(bound, "browser_navigation", url=f"{world.api.https}/browsed")
    assert page["success"], page["result"]
    assert f"URL: {world.api.https}/browsed" in page["result"], page["result"]
    assert world.api.requests_for("/browsed")[-1].is_tls
    # It is no browser that trusts everybody: nothing is bound to this host, and nobody knows who signed for it.
    other = use(bound, "browser_navigation", url=f"{world.good.https}/not-browsed")
    assert not other["success"] and "ERR_CERT" in other["result"], other["result"]
    assert world.good.requests_for("/not-browsed") == []


def test_a_browser_that_somebody_starts_does_so_too(world, bound):
    displayed = bound.run(f"{_HEADLESS} --dump-dom {world.api.https}/dumped", timeout=300)
    assert "api.test" in displayed["stdout"] and "/dumped" in displayed["stdout"], displayed["output"][-2000:]
    assert world.api.requests_for("/dumped")[-1].is_tls
