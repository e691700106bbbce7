"""`SANDBOX_PROVIDER=fake`: a server for the tests of other programs, which runs nothing."""

import json

import pytest

from server import Server


@pytest.fixture(scope="module")
def rules(tmp_path_factory):
    path = tmp_path_factory.mktemp("fake") / "rules.json"
    rule = {"command": "^pytest", "stdout": "3 passed\n", "files": {"/home/user/report.xml": "<testsuite/>"}}
    path.write_text(json.dumps([rule, {"command": "^make$", "stderr": "no rule\n", "exit_code": 2}]))
    return path


@pytest.fixture(scope="module")
def server(rules):
    variables = {"SANDBOX_PROVIDER": "fake", "SANDBOX_FAKE_RULES": str(rules), "SANDBOX_FAKE_SEED": "7"}
    with Server(variables=variables) as server:
        yield server


@pytest.fixture
def api(server):
    api = server.admin()
    yield api
    api.close()


@pytest.fixture
def sandbox(api):
    sandbox = api.create()
    yield sandbox
    api.remove(sandbox)


def test_commands_answer_by_rules(api, sandbox):
    assert api.run(sandbox, "pytest -q")["stdout"] == "3 passed\n"
    assert api.read(sandbox, "/home/user/report.xml") == "<testsuite/>"
    created = api.run(sandbox, "make")
    assert (created["stderr"], created["exit_code"]) == ("no rule\n", 2)
    assert api.run(sandbox, "echo one > f && cat f")["stdout"] == "one\n"


def test_what_no_rule_knows_fails_and_says_what_to_do(api, sandbox, rules):
    ran = api.run(sandbox, "npm install")
    assert ran["exit_code"] == 127
    assert "npm install" in ran["stderr"] and str(rules) in ran["stderr"]


def test_files_outlive_a_pause_and_a_stop(api, sandbox):
    api.write(sandbox, "/home/user/kept", "kept")
    api.pause(sandbox)
    assert api.read(sandbox, "/home/user/kept") == "kept"
    api.ok("POST", f"/sandboxes/{sandbox}/stop")
    assert api.read(sandbox, "/home/user/kept") == "kept"


def test_it_is_the_same_every_time(server, api, rules):
    variables = {"SANDBOX_PROVIDER": "fake", "SANDBOX_FAKE_SEED": "8"}
    seen = []
    for _ in range(2):
        with Server(variables=variables) as twin:
            caller = twin.admin()
            seen.append([caller.info(caller.create())["provider_sandbox_id"] for _ in range(3)])
            caller.close()
    assert seen[0] == seen[1] and len(set(seen[0])) == 3
