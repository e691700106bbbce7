"""What schemathesis does besides generating: real names in a share of the cases, and counting.

Nothing is excluded. Two things are changed, with their reasons beside them: see `QUIET` and `CHANGING`.
"""

import os
import posixpath
import random
import re

import schemathesis

from targets import Targets

# Names that occur in paths, queries and bodies, with what to put there.
SANDBOX_NAMES = {"id", "sandbox_id"}
LIKE_AN_ID = re.compile(r"[a-z0-9]{20}")
PATHS = ["/home/user/file", "file", "/tmp", "/home/user/new/file", "/proc/self/status", "/nothing"]
PATH_NAMES = {"path", "file_path", "directory_path", "from", "to"}
# A stream without an end cannot be fuzzed by a client that reads to the end; `tests/contracts/test_streams.py` follows.
QUIET = {"follow"}

# What changes while it is packed makes an archive that is cut off, so that nobody takes it for whole. Names of these folders are
# learned from answers that list files.
CHANGING = ("/proc", "/sys", "/dev")

targets = Targets(os.environ["FUZZ_URL"], os.environ["FUZZ_KEY"])
chance = random.Random(0)
# A line for every answer. A file, because a program that ends in the middle has counted too.
answers = os.open(os.environ["FUZZ_ANSWERS"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def ends_or_freezes(case):
    """Whether a request is one of those that a sandbox of others would suffer from."""
    last = case.path.rstrip("/").rpartition("/")[2]
    return last in {"delete", "pause", "stop", "schedule-timeout", "timeout"} or (
        case.method == "DELETE" and last == "{id}"
    )


def real(name, case):
    """Something that exists for a parameter of this name, or None."""
    path = case.path
    with targets.lock:
        if name in SANDBOX_NAMES:
            return chance.choice(targets.doomed if ends_or_freezes(case) else targets.sandboxes)
        if name == "name" and path.startswith("/users"):
            return chance.choice(targets.users)
        if name == "name" and path.startswith("/keys"):
            return chance.choice(targets.keys)
        if name in PATH_NAMES:
            return chance.choice(PATHS)
    return None


def spare_the_used(case):
    """Ids are learned from answers too, those of the other program among them: what ends or freezes one is for the doomed."""
    if not ends_or_freezes(case):
        return
    for container in (case.path_parameters, case.query, case.body):
        if isinstance(container, dict):
            for name in SANDBOX_NAMES & set(container):
                if LIKE_AN_ID.fullmatch(str(container[name])):
                    container[name] = real(name, case)


def spare_ourselves(case):
    """Names are also learned from answers; the user and the key that everything here is done with are not for shooting."""
    parameters = case.path_parameters or {}
    if parameters.get("name") in targets.own_names:
        parameters["name"] = real("name", case) or "nobody"


def spare_what_changes(case):
    """An archive is asked for of what stays as it is, or of one file."""
    query = case.query if isinstance(case.query, dict) else {}
    location = posixpath.normpath("/" + str(query.get("path", "")).lstrip("/"))
    if case.path.endswith("/copy-from") and (location == "/" or location.startswith(CHANGING)):
        query["path"] = "/proc/self/status"


@schemathesis.serializer("application/x-tar")
def send_archive(context, value):
    """What was generated for an archive goes as it is: hardly ever is it one."""
    return value if isinstance(value, bytes) else str(value).encode()


def put_real_names(container, case):
    if not isinstance(container, dict):
        return
    for name in container:
        if (value := real(name, case)) is not None:
            container[name] = value


@schemathesis.hook
def before_call(context, case, kwargs):
    targets.tend_sometimes()
    for container in (case.query, case.body):
        if isinstance(container, dict):
            for name in QUIET & set(container):
                container[name] = False if container is case.body else "false"
    if "text/event-stream" in str((case.headers or {}).get("Accept", "")):
        case.headers.pop("Accept")
    # Two of three: the rest finds out what happens with names that do not exist.
    if chance.random() < 0.67:
        for container in (case.path_parameters, case.query, case.body):
            put_real_names(container, case)
    spare_the_used(case)
    spare_ourselves(case)
    spare_what_changes(case)


@schemathesis.hook
def after_call(context, case, response):
    os.write(answers, f"{response.status_code} {case.operation.label}\n".encode())
