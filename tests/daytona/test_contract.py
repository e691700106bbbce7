"""The counterpart accepts only what the official client can send, and remembers what it refused."""

import json

import contract
import pytest
from daytona_api_client import ApiClient, ConfigApi, Configuration, SandboxApi, SnapshotsApi
from daytona_toolbox_api_client import FileSystemApi, InfoApi


@pytest.mark.parametrize(
    "body",
    [
        {"snapshots": "misspelt"},
        {"labels": {"a": 1}},
        {"autoStopInterval": "5"},
        {"auto_stop_interval": 5},
        {"buildInfo": {"dockerfileContent": "FROM x", "extra": True}},
        [],
    ],
)
def test_bodies_no_official_client_sends(counterpart, body):
    before = len(counterpart.report()["refused"])
    assert counterpart.raw("POST", "/sandbox", json=body).status_code == 400
    refused = counterpart.report()["refused"]
    assert len(refused) == before + 1
    assert (refused[-1]["client"], refused[-1]["operation"]) == ("raw", "create_sandbox")


def test_queries_no_official_client_sends(counterpart):
    assert counterpart.raw("GET", "/sandbox", params={"page": "1"}).status_code == 400
    assert counterpart.report()["refused"][-1]["operation"] == "list_sandboxes"


def test_routes_that_are_none(counterpart):
    assert counterpart.raw("GET", "/sandboxes").status_code == 404
    assert counterpart.report()["unknown"][-1] == {"client": "raw", "method": "GET", "path": "/api/sandboxes"}


def test_nulls_and_defaults_are_no_unknown_fields():
    read = contract.CONTROL["create_sandbox"].read
    assert read(b"{}").labels is None
    assert read(json.dumps({"name": None, "env": {}, "volumes": []}).encode()).env == {}


def test_answers_are_whole_or_not_sent():
    with pytest.raises(AssertionError):
        contract.CONTROL["get_port_preview_url"].write({"sandboxId": "a", "url": "b", "token": "c", "more": 1})
    with pytest.raises(ValueError):
        contract.CONTROL["get_port_preview_url"].write({"sandboxId": "a"})


def test_configuration_is_open_to_all(counterpart):
    outcome = ConfigApi(ApiClient(Configuration(host=counterpart.api_url))).config_controller_get_config()
    assert outcome.default_snapshot == "daytona-small"


def test_what_only_the_generated_client_of_the_sdk_calls(daytona, sandbox):
    """Operations without a method of their own in the SDK, over its own connection."""
    assert SandboxApi(daytona._api_client).get_toolbox_proxy_url(sandbox.id).url == sandbox.toolbox_proxy_url
    toolbox = sandbox._toolbox_api
    assert InfoApi(toolbox).get_version()
    sandbox.fs.upload_file(b"alone", "alone")
    assert bytes(FileSystemApi(toolbox).download_file("alone")) == b"alone"
    assert FileSystemApi(toolbox).upload_file("alone", ("alone", b"again")).name == "alone"
    assert sandbox.fs.download_file("alone") == b"again"


def test_a_snapshot_can_be_put_aside(daytona, make):
    source = make()
    source.create_snapshot(f"aside-{source.id[:8]}")
    snapshot = daytona.snapshot.get(f"aside-{source.id[:8]}")
    SnapshotsApi(daytona._api_client).deactivate_snapshot(snapshot.id)
    assert daytona.snapshot.get(snapshot.name).state == "inactive"
    assert daytona.snapshot.activate(snapshot).state == "active"
    daytona.snapshot.delete(snapshot)
