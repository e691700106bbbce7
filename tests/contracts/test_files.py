"""Files: empty ones, odd ones, large ones; and no way out of the sandbox's own file system."""

import hashlib
import secrets
from pathlib import Path

import httpx
import pytest

import processes
from api import describe_reply

MIB = 1 << 20


def download(api, sandbox, path, **body):
    return api.post("/sandboxes/download-file", {"sandbox_id": sandbox, "file_path": path, **body})


def test_an_empty_file_is_written_read_and_downloaded(api, shared):
    assert api.write(shared, "/home/user/empty", "")["success"] is True
    assert api.read(shared, "/home/user/empty") == ""
    assert download(api, shared, "/home/user/empty", format="text").json()["content"] == ""
    for path, body in (("/sandboxes/download-file", {"format": "bytes"}), ("/sandboxes/download-file-stream", {})):
        reply = api.post(path, {"sandbox_id": shared, "file_path": "/home/user/empty", **body})
        assert (reply.status_code, reply.content) == (200, b""), describe_reply(reply)


def test_content_that_is_absent_is_400_not_an_empty_file(api, shared):
    reply = api.post("/sandboxes/write-file", {"sandbox_id": shared, "path": "/home/user/absent"})
    assert reply.status_code == 400, describe_reply(reply)
    assert api.post("/sandboxes/read-file", {"sandbox_id": shared, "path": "/home/user/absent"}).status_code == 404


def test_a_binary_file_is_422_with_a_hint(api, shared):
    api.run(shared, r"printf '\377\376' > /tmp/bytes")
    reply = api.post("/sandboxes/read-file", {"sandbox_id": shared, "path": "/tmp/bytes"})
    assert reply.status_code == 422, describe_reply(reply)
    assert "download-file" in reply.text
    reply = download(api, shared, "/tmp/bytes", format="bytes")
    assert reply.content == b"\xff\xfe"
    assert reply.headers["content-type"] == "application/octet-stream"
    assert "bytes" in reply.headers["content-disposition"]


def test_a_missing_file_is_404_with_a_code_and_a_folder_is_no_server_error(api, shared):
    for path in ("/sandboxes/read-file", "/sandboxes/download-file", "/sandboxes/download-file-stream"):
        missing = api.post(path, {"sandbox_id": shared, "file_path": "/no/such/file"})
        assert missing.status_code == 404, describe_reply(missing)
        assert missing.json()["code"] and missing.json()["detail"]
        assert 400 <= api.post(path, {"sandbox_id": shared, "file_path": "/tmp"}).status_code < 500


def test_upload_takes_a_form(api, shared):
    content = secrets.token_bytes(3 * MIB)
    form = {"sandbox_id": shared, "file_path": "/home/user/deep/er/up.bin"}
    reply = api.http.post("/sandboxes/upload-file", data=form, files={"file": ("any.bin", content)})
    assert reply.status_code == 200, describe_reply(reply)
    assert download(api, shared, "/home/user/deep/er/up.bin", format="stream").content == content


def test_create_directory_by_query_and_by_body(api, shared):
    query = {"sandbox_id": shared, "directory_path": "/home/user/by-query"}
    body = {"sandbox_id": shared, "directory_path": "/home/user/by-body"}
    assert api.ok("POST", "/sandboxes/create-directory", params=query)["success"] is True
    assert api.ok("POST", "/sandboxes/create-directory", body)["success"] is True
    repeated = api.post("/sandboxes/create-directory", body)
    assert repeated.status_code == 409, describe_reply(repeated)
    assert api.ok("POST", "/sandboxes/create-directory", {**body, "exist_ok": True})["success"] is True


def test_unicode_and_odd_names_survive(api, shared):
    for name in ("ünïcode ☃.txt", "with space", "-dash", "quote'\"", "new\nline"):
        api.write(shared, f"/tmp/{name}", f"content of {name}")
        assert api.read(shared, f"/tmp/{name}") == f"content of {name}"


# What only this host has; a sandbox that shows it has leaked.
HOST_SECRETS = ["admin.key", "sandyard.db", "launcher.sock"]

HOSTILE_PATHS = [
    "{0}", "/../../../../../../../..{0}", "../../../../../../../../..{0}", "/home/user/../../..{0}", "//{0}",
    "/proc/1/root{0}", "/proc/self/root/../..{0}", "/home/user/../../../../../proc/1/cwd/../../..{0}",
    "/home/user{0}", "/home/user-evil/../..{0}", "%2e%2e/%2e%2e/%2e%2e{0}", "/./././..{0}", "..\\..\\..{0}",
]  # fmt: skip


@pytest.mark.parametrize("hostile_path", HOSTILE_PATHS)
def test_dots_and_prefixes_stay_inside(server, api, shared, hostile_path):
    for secret in HOST_SECRETS:
        path = hostile_path.format(f"{server.data.path}/{secret}")
        for verb in ("read-file", "download-file", "download-file-stream"):
            reply = api.post(f"/sandboxes/{verb}", {"sandbox_id": shared, "file_path": path})
            assert reply.status_code in (404, 422), describe_reply(reply)
        assert api.get(f"/sandboxes/{shared}/files", params={"path": path}).status_code in (404, 422)


def test_hostile_paths_write_inside(server, api, shared):
    host = server.data.path / "written-by-a-hostile_path"
    for path in (str(host), f"/../../../../..{host}", f"../../../../../../..{host}", f"/proc/1/root{host}"):
        api.post("/sandboxes/write-file", {"sandbox_id": shared, "path": path, "content": "out"})
        api.http.post(
            "/sandboxes/upload-file", data={"sandbox_id": shared, "file_path": path}, files={"file": ("x", b"out")}
        )
        assert not host.exists()


def test_a_link_to_the_host_leads_nowhere(server, api, shared):
    api.run(shared, f"ln -sfn {server.data.path} /home/user/out; ln -sfn /proc/1/root /home/user/root")
    for path in ("/home/user/out/admin.key", f"/home/user/root{server.data.path}/admin.key"):
        assert api.post("/sandboxes/read-file", {"sandbox_id": shared, "path": path}).status_code == 404


def test_one_sandbox_cannot_read_files_of_another(api, make):
    first, other = make(), make()
    api.write(first, "/home/user/secret", "mine")
    assert api.post("/sandboxes/read-file", {"sandbox_id": other, "path": "/home/user/secret"}).status_code == 404


def generated(size):
    """A stream of bytes that never is in memory whole, and its digest when it is over."""
    digest, block = hashlib.sha256(), secrets.token_bytes(MIB)

    def pieces():
        for number in range(size // MIB):
            piece = number.to_bytes(8, "big") + block[8:]
            digest.update(piece)
            yield piece

    return digest, pieces()


class Form:
    """A multipart body made piece by piece: httpx would read a file object, this has none."""

    def __init__(self, fields, name, content):
        self.boundary = secrets.token_hex(16)
        head = "".join(
            f'--{self.boundary}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'
            for key, value in fields.items()
        )
        head += f'--{self.boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="f"\r\n'
        self.head = (head + "Content-Type: application/octet-stream\r\n\r\n").encode()
        self.content = content

    def pieces(self):
        yield self.head
        yield from self.content
        yield f"\r\n--{self.boundary}--\r\n".encode()

    @property
    def headers(self):
        return {"Content-Type": f"multipart/form-data; boundary={self.boundary}"}


@pytest.mark.timeout(900)
def test_a_gibibyte_goes_in_and_out_without_being_held_in_memory(server, api, make):
    sandbox, size = make(), 1024 * MIB
    patient = httpx.Client(base_url=server.url, timeout=400, trust_env=False)
    # Whatever the server needs for any upload at all it has after a small one.
    warm = Form({"sandbox_id": sandbox, "file_path": "/home/user/warm"}, "file", [b"x" * 8 * MIB])
    patient.post("/sandboxes/upload-file", content=warm.pieces(), headers=warm.headers).raise_for_status()
    processes.reset_peak(server.pid)
    before = processes.memory_bytes(server.pid)

    digest, content = generated(size)
    form = Form({"sandbox_id": sandbox, "file_path": "/home/user/large"}, "file", content)
    reply = patient.post("/sandboxes/upload-file", content=form.pieces(), headers=form.headers)
    assert reply.status_code == 200, describe_reply(reply)
    grown = processes.memory_bytes(server.pid, "VmHWM") - before
    print(f"1 GiB upload: the server grew by {grown / MIB:.1f} MiB")
    assert grown < 32 * MIB

    processes.reset_peak(server.pid)
    before = processes.memory_bytes(server.pid)
    seen, length = hashlib.sha256(), 0
    body = {"sandbox_id": sandbox, "file_path": "/home/user/large", "format": "stream"}
    with patient.stream("POST", "/sandboxes/download-file", json=body) as reply:
        assert reply.status_code == 200
        for piece in reply.iter_bytes(MIB):
            seen.update(piece)
            length += len(piece)
    grown = processes.memory_bytes(server.pid, "VmHWM") - before
    print(f"1 GiB download: the server grew by {grown / MIB:.1f} MiB")
    assert (length, seen.hexdigest()) == (size, digest.hexdigest())
    assert grown < 32 * MIB
    patient.close()


def test_an_upload_that_breaks_off_leaves_the_server_well(server, api, make):
    sandbox = make()

    def broken():
        yield b"x" * MIB
        raise OSError("the client goes")

    form = Form({"sandbox_id": sandbox, "file_path": "/home/user/half"}, "file", broken())
    with pytest.raises(OSError):
        url = f"{server.url}/sandboxes/upload-file"
        httpx.post(url, content=form.pieces(), headers=form.headers, timeout=120, trust_env=False)
    assert api.run(sandbox, "echo well")["output"] == "well\n"


def test_the_data_directory_is_for_its_owner_alone(server):
    assert Path(server.data.path).stat().st_mode & 0o777 == 0o700
    assert (server.data.path / "admin.key").stat().st_mode & 0o777 == 0o600
