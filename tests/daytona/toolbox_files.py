"""The toolbox: files. All is done as the sandbox's own user, who may not do everything."""

import base64
import hashlib
import hmac
import json
import os
import secrets
import time
from urllib.parse import quote

from aiohttp import web

from backing import USER, NativeError
from errors import Problem, daemon
from sandboxes import Sandboxes
from toolbox_process import started

_CHUNK = 1 << 18


def _path(request, name="path"):
    path = request.query.get(name)
    if not path:
        raise daemon(400, f"{name} is required", "INVALID_FILE_PATH")
    return Sandboxes.absolute(path)


async def _do(cloud, record, *command):
    """Runs a program on files; its complaint becomes the toolbox's."""
    done = await cloud.backing.run(record["native"], ["env", "LC_ALL=C", *command], cwd="/")
    if done["exit_code"] != 0:
        raise _complaint(done["stderr"])
    return done["stdout"]


def _complaint(response):
    if "No such file" in response:
        return daemon(404, response.strip(), "FILE_NOT_FOUND")
    if "ermission denied" in response or "not permitted" in response:
        return daemon(403, response.strip(), "FILE_ACCESS_DENIED")
    return daemon(400, response.strip(), "BAD_REQUEST")


async def _may(cloud, record, path, right):
    """Whether the user may `r`ead or `w`rite; what is not there yet is written by who may write the nearest folder above."""
    script = 'p=$2; if [ "$1" = w ]; then while [ ! -e "$p" ]; do p=$(dirname "$p"); done; fi; cat </dev/null; test -$1 "$p"'
    checks = f'{script} || {{ ls -d "$p" >/dev/null && echo "$p: Permission denied" >&2; exit 1; }}'
    await _do(cloud, record, "bash", "-c", checks, "may", right, path)


# --- looking


def _info(entry):
    return {
        "name": entry["name"],
        "path": entry["path"],
        "isDir": entry["type"] in ("dir", "directory", "folder"),
        "size": entry["size"],
        "mode": entry["permissions"],
        "permissions": f"{entry['mode'] & 0o7777:04o}",
        "modTime": entry["modified_at"] or "",
        "modifiedAt": entry["modified_at"],
        "owner": entry["owner"],
        "group": entry["group"],
    }


async def _native(cloud, record, what, path, **query):
    try:
        return await cloud.backing.get(f"/sandboxes/{record['native']}/files/{what}", path=path, user=USER, **query)
    except NativeError as error:
        if error.status == 404:
            raise daemon(404, error.detail, "FILE_NOT_FOUND") from error
        raise daemon(400, error.detail, "INVALID_FILE_PATH") from error


async def list_files(cloud, request, body):
    record = started(cloud, request)
    path = Sandboxes.absolute(request.query.get("path") or "")
    depth = request.query.get("depth", "1")
    if not depth.isdigit() or depth == "0":
        raise daemon(400, "depth must be at least 1", "BAD_REQUEST")
    await _may(cloud, record, path, "r")
    entries = (await _native(cloud, record, "list", path, depth=depth))["entries"]
    return [_info(entry) for entry in entries]


async def get_file_info(cloud, request, body):
    record, path = started(cloud, request), _path(request)
    await _do(cloud, record, "stat", "--", path)
    return _info((await _native(cloud, record, "stat", path))["entry"])


async def search_files(cloud, request, body):
    record, path = started(cloud, request), _path(request)
    found = await _do(cloud, record, "find", path, "-mindepth", "1", "-name", request.query.get("pattern", ""), "-print0")
    return {"files": [name for name in found.split("\0") if name]}


async def find_in_files(cloud, request, body):
    record, path = started(cloud, request), _path(request)
    script = 'ls -d -- "$2" >/dev/null || exit; grep -rnZIF -e "$1" -- "$2" || [ $? = 1 ]'
    found = await _do(cloud, record, "bash", "-c", script, "find", request.query.get("pattern", ""), path)
    rows = (line.split("\0", 1) for line in found.splitlines() if "\0" in line)
    split = ((file, *rest.split(":", 1)) for file, rest in rows)
    return [{"file": file, "line": int(line), "content": content} for file, line, content in split]


# --- changing


async def create_folder(cloud, request, body):
    record, path = started(cloud, request), _path(request)
    mode = request.query.get("mode") or "0755"
    if not mode.isdigit():
        raise daemon(400, "mode must be octal", "BAD_REQUEST")
    await _do(cloud, record, "mkdir", "-p", "-m", mode, "--", path)


async def delete_file(cloud, request, body):
    record, path = started(cloud, request), _path(request)
    recursive = request.query.get("recursive", "false").lower() == "true"
    await _do(cloud, record, "rm", *(["-r"] if recursive else []), "--", path)


async def move_file(cloud, request, body):
    record = started(cloud, request)
    await _do(cloud, record, "mv", "-T", "--", _path(request, "source"), _path(request, "destination"))


async def replace_in_files(cloud, request, body):
    record = started(cloud, request)
    script = (
        "import sys\nfile, old, new = sys.argv[1:]\n"
        "text = open(file, newline='').read()\nopen(file, 'w', newline='').write(text.replace(old, new))\n"
    )
    results = []
    for file in body.files:
        try:
            await _do(cloud, record, "python3", "-c", script, Sandboxes.absolute(file), body.pattern, body.new_value)
            results.append({"file": file, "success": True})
        except Problem as problem:
            results.append({"file": file, "success": False, "error": problem.message[-500:]})
    return results


async def set_file_permissions(cloud, request, body):
    record, path = started(cloud, request), _path(request)
    await _do(cloud, record, "stat", "--", path)
    if mode := request.query.get("mode"):
        await _do(cloud, record, "chmod", mode, "--", path)
    owner, group = request.query.get("owner"), request.query.get("group")
    if owner or group:
        await _do(cloud, record, "chown", f"{owner or ''}{':' + group if group else ''}", "--", path)


# --- contents


def _signed(cloud, request, method):
    """A URL that carries its own permission, made by the SDK with the sandbox's signing key."""
    if "signature" not in request.query:
        return
    record = cloud.sandboxes.find(request.match_info["toolbox_sandbox"])
    expires = int(request.query.get("expires", "0"))
    text = f"v1:files:{method}:{request.query.get('path', '')}:{expires}".encode()
    digest = hmac.new(record["signing_key"].encode(), text, hashlib.sha256).digest()
    right = "v1_" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    if not hmac.compare_digest(right, request.query["signature"]) or 0 < expires < time.time():
        raise Problem(401, "invalid signature", "UNAUTHORIZED", source="DAYTONA_DAEMON")


async def _put(cloud, record, path, part):
    """Writes a file as it comes. The user must be allowed to, and owns it."""
    await _may(cloud, record, path, "w")

    async def chunks():
        while chunk := await part.read_chunk(_CHUNK):
            cloud.sandboxes.touch(record)
            yield chunk

    try:
        await cloud.backing.call(
            "PUT", f"/sandboxes/{record['native']}/files", params={"path": path, "user": USER}, data=chunks()
        )
    except NativeError as error:
        raise daemon(400, error.detail, "BAD_REQUEST") from error


async def upload_file(cloud, request, body):
    _signed(cloud, request, "POST")
    record, path = started(cloud, request), _path(request)
    async for part in await request.multipart():
        if part.name == "file":
            await _put(cloud, record, path, part)
            return {"name": os.path.basename(path), "path": path, "type": "file"}
    raise daemon(400, "the form has no part `file`", "BAD_REQUEST")


async def upload_files(cloud, request, body):
    record = started(cloud, request)
    paths, errors, files = {}, [], []
    async for part in await request.multipart():
        index, _, kind = (part.name or "").partition("].")
        if kind == "path":
            paths[index] = Sandboxes.absolute((await part.read()).decode())
        elif kind == "file" and index in paths:
            try:
                await _put(cloud, record, paths[index], part)
                files.append({"name": os.path.basename(paths[index]), "path": paths[index], "type": "file"})
            except Problem as problem:
                await part.release()
                errors.append(f"{paths[index]}: {problem.message}")
        else:
            # The path comes before its file, in every official client.
            cloud.report.refused(request, "upload_files", f"unexpected part {part.name}")
            errors.append(f"unexpected part {part.name}")
    return (400, {"errors": errors}) if errors else (200, {"files": files})


async def download_file(cloud, request, body):
    _signed(cloud, request, "GET")
    record, path = started(cloud, request), _path(request)
    await _may(cloud, record, path, "r")
    answer = web.StreamResponse(headers={"Content-Type": "application/octet-stream"})
    async with cloud.backing.stream(
        "GET", f"/sandboxes/{record['native']}/files", params={"path": path, "user": USER}
    ) as content:
        if content.status != 200:
            raise daemon(400, (await content.json())["detail"], "FILE_READ_FAILED")
        answer.content_length = content.content_length
        await answer.prepare(request)
        async for chunk in content.content.iter_chunked(_CHUNK):
            await answer.write(chunk)
    return answer


async def download_files(cloud, request, body):
    """All files in one form: a part `file` for each that can be read, a part `error` for each that cannot."""
    record, boundary = started(cloud, request), secrets.token_hex(16)
    answer = web.StreamResponse(headers={"Content-Type": f"multipart/form-data; boundary={boundary}"})
    await answer.prepare(request)
    for name in body.paths:
        try:
            path = Sandboxes.absolute(name)
            await _may(cloud, record, path, "r")
            if (await _native(cloud, record, "stat", path))["entry"]["type"] != "file":
                raise daemon(400, f"{name} is no file", "INVALID_FILE_PATH")
        except Problem as problem:
            await answer.write(_part(boundary, "error", name, "application/json"))
            await answer.write(json.dumps(problem.body(request)).encode() + b"\r\n")
            continue
        await answer.write(_part(boundary, "file", name, "application/octet-stream"))
        source = {"path": path, "user": USER}
        async with cloud.backing.stream("GET", f"/sandboxes/{record['native']}/files", params=source) as content:
            async for chunk in content.content.iter_chunked(_CHUNK):
                await answer.write(chunk)
        await answer.write(b"\r\n")
    await answer.write(f"--{boundary}--\r\n".encode())
    return answer


def _part(boundary, kind, name, content_type):
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    # Names beyond ASCII have a parameter of their own, as RFC 5987 has it.
    type_name = f'filename="{quoted}"' if name.isascii() else f"filename*=UTF-8''{quote(name)}"
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="{kind}"; {type_name}\r\n'
    return f"{head}Content-Type: {content_type}\r\n\r\n".encode()
