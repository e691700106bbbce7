"""The published OpenAPI document holds: 20,000 generated requests, no server error, no answer it does not describe."""

import math
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import httpx
import pytest

from server import Server
from targets import OWNER_OF_KEYS

REQUESTS = 20_000
CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
]
METHODS = {"get", "put", "post", "delete", "patch"}
# Number of processes that share the operations, since one Python uses one core.
PROGRAMS = 2
# How much of the requests the fuzzing phase makes; the others make the rest.
EXAMPLES_SHARE = 0.32
# They end on their own; this limit is for one that does not.
TIMEOUT = 2000


@pytest.fixture(scope="module")
def server():
    # The quota bounds what fuzzing can make, and is more than it does: being full is an honest 503, and would hide others.
    # Commands that a generated text happens to be are ended soon.
    limits = {"LIMITS_SANDBOXES": 2000, "LIMITS_SANDBOXES_PER_USER": 0, "LIFECYCLE_COMMAND_TIMEOUT": 5}
    with Server("--auth", "required", **limits) as server:
        admin = server.admin()
        admin.ok("POST", "/users", {"name": OWNER_OF_KEYS, "role": "user"})
        yield server
        admin.close()


@pytest.fixture(scope="module")
def document(server):
    reply = httpx.get(f"{server.url}/openapi.json", timeout=120, trust_env=False)
    assert reply.status_code == 200
    return reply.json()


def test_document_is_openapi_3_1_with_unique_operation_ids(document):
    assert document["openapi"].startswith("3.1")
    ids = [operation["operationId"] for operation in operations(document)]
    assert len(ids) == len(set(ids)) > 50


def operations(document):
    return [item[method] for item in document["paths"].values() for method in METHODS & set(item)]


def start(server, ids, examples, location):
    """One schemathesis over some of the operations."""
    here = Path(__file__).parent
    command = [
        Path(sys.executable).with_name("st"), "run", f"{server.url}/openapi.json",
        "--checks", ",".join(CHECKS), "--phases", "examples,coverage,fuzzing", "--mode", "all",
        "--max-examples", str(examples), "--workers", "1", "--request-timeout", "120", "--no-shrink",
        "--suppress-health-check", "all", "--generation-database", "none", "--seed", "1", "--no-color",
        "--continue-on-failure", "--output-sanitize", "true", "--warnings", "off",
        "--header", f"Authorization: Bearer {server.admin_key}",
    ]  # fmt: skip
    for one in ids:
        command += ["--include-operation-id", one]
    environment = {
        **os.environ,
        "PYTHONPATH": f"{here}:{here.parent / 'harness'}",
        "SCHEMATHESIS_HOOKS": "hooks",
        "FUZZ_URL": server.url,
        "FUZZ_KEY": server.admin_key,
        "FUZZ_ANSWERS": str(location.with_suffix(".answers")),
    }
    with location.with_suffix(".log").open("wb") as log:
        return subprocess.Popen(
            command, env=environment, cwd=location.parent, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )


def test_no_server_error_and_no_answer_beside_the_document(server, document, tmp_path):
    ids = sorted(operation["operationId"] for operation in operations(document))
    # The other phases add some; what is generated twice over is not sent twice.
    examples = math.ceil(EXAMPLES_SHARE * REQUESTS / len(ids))
    locations = [tmp_path / f"fuzz-{number}" for number in range(PROGRAMS)]
    programs = [start(server, ids[number::PROGRAMS], examples, location) for number, location in enumerate(locations)]
    try:
        codes = [program.wait(timeout=TIMEOUT) for program in programs]
    finally:
        for program in programs:
            program.kill()
            program.wait()
        print(f"\n{report(locations, ids)}")
    logs = [location.with_suffix(".log").read_text(errors="replace") for location in locations]
    assert codes == [0] * PROGRAMS, "\n".join(log[-20_000:] for log in logs)
    assert sum(len(answers_of(location)) for location in locations) >= REQUESTS
    server.wait_healthy()


def answers_of(location):
    return location.with_suffix(".answers").read_text().splitlines()


def report(locations, ids):
    answers = [answer for location in locations for answer in answers_of(location)]
    by_status = Counter(answer.split()[0] for answer in answers)
    return f"{len(answers)} requests to {len(ids)} operations: {dict(sorted(by_status.items()))}"
