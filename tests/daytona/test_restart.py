"""A counterpart that is killed forgets nothing; one that is asked to end leaves nothing."""

import functools
import tempfile
from pathlib import Path

import httpx
import processes
from conftest import config
from daytona import CreateSandboxFromSnapshotParams, Daytona, SandboxState, SessionExecuteRequest
from running import TIMEOUT, Counterpart
from waiting import wait_for

get = functools.partial(httpx.get, timeout=TIMEOUT)


def test_killed_and_started_again():
    with tempfile.TemporaryDirectory(prefix="daytona-", dir="/var/tmp") as state:
        counterpart = Counterpart("--state", state).start()
        url = counterpart.api_url
        daytona = Daytona(config(counterpart))
        sandbox = daytona.create(CreateSandboxFromSnapshotParams(name="kept", labels={"a": "b"}))
        sandbox.fs.upload_file(b"a page", "index.html")
        sandbox.process.create_session("s")
        serve = SessionExecuteRequest(command="exec python3 -m http.server 3000", run_async=True)
        sandbox.process.execute_session_command("s", serve)
        link = sandbox.get_preview_link(3000)
        token = {"x-daytona-preview-token": link.token}
        wait_for(lambda: get(link.url, headers=token).status_code == 200, "it is served")
        half_made = counterpart.raw("POST", "/sandbox", json={}).json()["id"]

        counterpart.kill()
        counterpart.start()
        try:
            assert counterpart.api_url == url
            repeated = daytona.get("kept")
            assert (repeated.id, repeated.state, repeated.labels["a"]) == (sandbox.id, SandboxState.STARTED, "b")
            assert [command.exit_code for command in repeated.process.get_session("s").commands] == [None]
            assert get(link.url, headers=token).text == "a page"
            wait_for(lambda: daytona.get(half_made).state == SandboxState.STARTED, "what was begun is finished")
            assert "create_sandbox" in counterpart.report()["operations"]["sdk-python"]
        finally:
            counterpart.stop()
        assert processes.with_argument(f"{state}/sandyard") == []
        assert [path.name for path in Path(state).iterdir()] == []
