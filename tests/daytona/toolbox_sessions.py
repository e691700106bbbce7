"""The toolbox: sessions. Each is a shell inside the sandbox that lives on whatever becomes of this process."""

import json
import uuid

from aiohttp import WSCloseCode, web

from backing import HOME
from errors import daemon
from toolbox_process import environment, started

_ROOT = "/tmp/.daytona-sessions"

# Reads names of commands from a pipe and runs each in this very shell, so that `cd` and `export` last.
_SHELL = r"""
exec 3<>"$1/in"
trap 'code=$?; : >"$1/ended"; [ -z "$at" ] || [ -e "$at/exit" ] || { echo $code >"$at/new" && mv "$at/new" "$at/exit"; }' EXIT
while IFS= read -r -u 3 name; do
    at=$1/$name
    eval "$(cat "$at/command")" >"$at/stdout" 2>"$at/stderr" <>"$at/stdin" 3<&-
    echo $? >"$at/exit.new"
    mv "$at/exit.new" "$at/exit"
done
"""
_BEGIN = """
mkdir -p "$1" && mkfifo "$1/in" && cd || exit
setsid bash -c "$2" session "$1" </dev/null >/dev/null 2>&1 &
echo $! >"$1/pid"
"""
_SUBMIT = """
[ ! -e "$1/ended" ] && [ -d "/proc/$(cat "$1/pid")" ] || exit 99
mkdir "$1/$2" && : >"$1/$2/stdout" && : >"$1/$2/stderr" && printf %s "$3" >"$1/$2/command" || exit
if [ "$4" = open ]; then mkfifo "$1/$2/stdin"; else : >"$1/$2/stdin"; fi
echo "$2" >"$1/in"
"""
_AWAIT = 'while [ ! -e "$1/$2/exit" ] && [ -d "/proc/$(cat "$1/pid")" ]; do sleep 0.02; done\n'
_TELL = 'cat "$1/$2/stdout"; cat "$1/$2/stderr" >&2'
_FOLLOW = (
    "( " + _AWAIT + ') & w=$!\ntail --pid=$w -s 0.05 -c +1 -f "$1/$2/stdout" &\n'
    'tail --pid=$w -s 0.05 -c +1 -f "$1/$2/stderr" >&2 &\nwait'
)
_END = 'kill -KILL -- "-$(cat "$1/pid")" 2>/dev/null; rm -rf "$1"'

# How the SDK tells the two streams apart.
_MARKS = {"stdout": b"\x01\x01\x01", "stderr": b"\x02\x02\x02"}


def _script(text, *arguments):
    return ["bash", "-c", text, "session", *arguments]


def _session(record, request):
    session = record["sessions"].get(request.match_info["sessionId"])
    if session is None:
        raise daemon(404, "session not found", "NOT_FOUND")
    return session


def _command(session, request):
    for command in session["commands"]:
        if command["id"] == request.match_info["commandId"]:
            return command
    raise daemon(404, "command not found", "PROCESS_NOT_FOUND")


async def create_session(cloud, request, body):
    record = started(cloud, request)
    if not body.session_id:
        raise daemon(400, "session id is required", "BAD_REQUEST")
    if body.session_id in record["sessions"]:
        raise daemon(409, "session already exists", "CONFLICT")
    session = {"location": f"{_ROOT}/{uuid.uuid4().hex}", "commands": []}
    record["sessions"][body.session_id] = session
    begin = _script(_BEGIN, session["location"], _SHELL)
    done = await cloud.backing.run(record["native"], begin, cwd=HOME, env=environment(record))
    if done["exit_code"] != 0:
        del record["sessions"][body.session_id]
        raise daemon(500, done["output"], "INTERNAL_SERVER_ERROR")
    cloud.store.save()


async def _refresh(cloud, record, session):
    """Looks which commands have ended."""
    for command in session["commands"]:
        if "exitCode" not in command:
            looked = ["cat", f"{session['location']}/{command['id']}/exit"]
            done = await cloud.backing.run(record["native"], looked)
            if done["exit_code"] == 0 and done["stdout"].strip():
                command["exitCode"] = int(done["stdout"])
                cloud.store.save()


async def list_sessions(cloud, request, body):
    record = started(cloud, request)
    for session in record["sessions"].values():
        await _refresh(cloud, record, session)
    return [{"sessionId": name, "commands": session["commands"]} for name, session in record["sessions"].items()]


async def get_session(cloud, request, body):
    record = started(cloud, request)
    session = _session(record, request)
    await _refresh(cloud, record, session)
    return {"sessionId": request.match_info["sessionId"], "commands": session["commands"]}


async def delete_session(cloud, request, body):
    record = started(cloud, request)
    session = _session(record, request)
    await cloud.backing.run(record["native"], _script(_END, session["location"]))
    record["sessions"].pop(request.match_info["sessionId"], None)
    cloud.store.save()


async def session_execute_command(cloud, request, body):
    record = started(cloud, request)
    session = _session(record, request)
    identity, is_async = str(uuid.uuid4()), bool(body.run_async or body.var_async)
    stdin = "open" if is_async else "empty"
    submit = _script(_SUBMIT, session["location"], identity, body.command, stdin)
    done = await cloud.backing.run(record["native"], submit)
    if done["exit_code"] == 99:
        raise daemon(410, "the session has ended", "SESSION_ENDED")
    if done["exit_code"] != 0:
        raise daemon(500, done["output"], "INTERNAL_SERVER_ERROR")
    command = {"id": identity, "command": body.command}
    session["commands"].append(command)
    cloud.store.save()
    if is_async:
        return 202, {"cmdId": identity}
    done = await cloud.backing.run(record["native"], _script(_AWAIT + _TELL, session["location"], identity))
    await _refresh(cloud, record, session)
    outcome = {"output": done["stdout"] + done["stderr"], "stdout": done["stdout"], "stderr": done["stderr"]}
    return 200, {"cmdId": identity, "exitCode": command.get("exitCode"), **outcome}


async def get_session_command(cloud, request, body):
    record = started(cloud, request)
    session = _session(record, request)
    command = _command(session, request)
    await _refresh(cloud, record, session)
    return command


async def get_session_command_logs(cloud, request, body):
    record = started(cloud, request)
    session = _session(record, request)
    identity = _command(session, request)["id"]
    if request.headers.get("Upgrade", "").lower() == "websocket":
        return await _follow(cloud, request, record, session["location"], identity)
    done = await cloud.backing.run(record["native"], _script(_TELL, session["location"], identity))
    return {"output": done["stdout"] + done["stderr"], "stdout": done["stdout"], "stderr": done["stderr"]}


async def _follow(cloud, request, record, location, identity):
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    body = {"command": _script(_FOLLOW, location, identity), "user": "daytona"}
    async with cloud.backing.stream("POST", f"/sandboxes/{record['native']}/run", json=body) as events:
        kind = None
        async for line in events.content:
            field, _, value = line.decode().rstrip("\n").partition(": ")
            if field == "event":
                kind = value
            elif field == "data" and kind in _MARKS:
                await socket.send_bytes(_MARKS[kind] + json.loads(value)["text"].encode())
    await socket.close(code=WSCloseCode.OK)
    return socket


async def send_input(cloud, request, body):
    record = started(cloud, request)
    session = _session(record, request)
    command = _command(session, request)
    await _refresh(cloud, record, session)
    if "exitCode" in command:
        raise daemon(410, "the command has completed", "COMMAND_ALREADY_COMPLETED")
    feed = _script('printf %s "$2" >"$1"', f"{session['location']}/{command['id']}/stdin", body.data)
    await cloud.backing.run(record["native"], feed)
