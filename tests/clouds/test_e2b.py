"""Sandboxes of E2B's cloud through this server's own contracts; a second Sandyard plays the cloud."""

import httpx

from waiting import wait_for


def test_a_sandbox_lives_there_and_is_used_here(api, cloud_sandboxes):
    before = set(cloud_sandboxes())
    parts = {"team": "blue", "sandyard.installation": "another"}
    sandbox = api.create(provider="e2b", env={"GREETING": "hello"}, metadata=parts)
    try:
        info = api.info(sandbox)
        assert info["provider"] == "e2b"
        assert set(cloud_sandboxes()) - before == {info["provider_sandbox_id"]}
        # What its maker said of it is there too, but for what would be taken for ours.
        outcome = cloud_sandboxes()[info["provider_sandbox_id"]]["metadata"]
        assert outcome["team"] == "blue"
        assert outcome["sandyard.installation"] != "another" and info["metadata"] == parts
        ran = api.run(sandbox, 'echo "$GREETING"; echo err >&2; exit 3')
        assert (ran["stdout"], ran["stderr"], ran["exit_code"]) == ("hello\n", "err\n", 3)
        api.write(sandbox, "/home/user/kept", "kept")
        api.pause(sandbox)
        assert cloud_sandboxes()[info["provider_sandbox_id"]]["status"] == "paused"
        # Any use wakes it, there as well.
        assert api.read(sandbox, "/home/user/kept") == "kept"
        assert cloud_sandboxes()[info["provider_sandbox_id"]]["status"] == "running"
    finally:
        api.remove(sandbox)
    assert set(cloud_sandboxes()) == before


def test_a_port_there_is_previewed_here(api, server):
    sandbox = api.create(provider="e2b")
    try:
        api.write(sandbox, "/home/user/index.html", "seen from outside")
        api.run(sandbox, "cd /home/user && python3 -m http.server 3000", background=True)
        link = api.ok("POST", "/sandboxes/expose-port", {"sandbox_id": sandbox, "port": 3000})["signed_url"]

        def page():
            return httpx.get(link, follow_redirects=True, trust_env=False, timeout=60).text

        wait_for(lambda: "seen from outside" in page(), "the page is served")
    finally:
        api.remove(sandbox)


def test_what_the_cloud_cannot_do_is_said(api):
    sandbox = api.create(provider="e2b")
    try:
        refused = api.get(f"/sandboxes/{sandbox}/diff")
        assert refused.json()["code"] == "unsupported", refused.text
    finally:
        api.remove(sandbox)


def test_the_key_is_shown_nowhere(api, server, cloud):
    sandbox = api.create(provider="e2b")
    try:
        displayed = [api.get(path).text for path in ("/health", "/info", "/metrics", f"/sandboxes/{sandbox}/info")]
        displayed.append(str(api.events(sandbox)))
        displayed.append(api.run(sandbox, "env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'")["output"])
        displayed.append(server.log.read_text(errors="replace"))
        assert not any(cloud.admin_key in text for text in displayed)
    finally:
        api.remove(sandbox)


def test_a_cloud_that_is_gone_is_said_and_comes_back(api, server, cloud, cloud_sandboxes):
    sandbox = api.create(provider="e2b")
    own = api.create()
    try:
        api.write(sandbox, "/home/user/kept", "kept")
        cloud.kill()
        refused = api.post("/sandboxes/create", {"user_id": "tester", "provider": "e2b"})
        assert refused.status_code in (502, 503), refused.text
        # What is here does not notice.
        assert api.run(own, "echo here")["output"] == "here\n"

        def health():
            # One that is busy says so for a moment, and is asked again.
            return api.get("/health").json()

        wait_for(lambda: health()["status"] == "degraded", "health says so", 120)
        standing = {one["name"]: one["status"] for one in health()["providers"]}
        assert standing == {"embedded": "healthy", "e2b": "unreachable"}
        assert api.status(sandbox) == "running"
        cloud.start()
        wait_for(lambda: health()["status"] == "healthy", "it is found again", 180)
        assert api.read(sandbox, "/home/user/kept") == "kept"
    finally:
        api.remove(sandbox)
        api.remove(own)
    wait_for(lambda: not cloud_sandboxes(), "nothing is left in the cloud")
