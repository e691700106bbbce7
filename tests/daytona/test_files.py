"""Files through the official SDK."""

import functools
import os

import httpx
import pytest
from daytona import DaytonaError, DaytonaForbiddenError, DaytonaNotFoundError, FileDownloadRequest, FileUpload
from running import TIMEOUT

get = functools.partial(httpx.get, timeout=TIMEOUT)


@pytest.fixture
def folder(sandbox, request):
    folder = f"/home/daytona/{request.node.name}"
    sandbox.fs.create_folder(folder, "755")
    return folder


def test_bytes_come_back(sandbox, folder):
    content = os.urandom(3 << 20)
    sandbox.fs.upload_file(content, f"{folder}/deep/er/data")
    assert sandbox.fs.download_file(f"{folder}/deep/er/data") == content
    assert sandbox.process.exec(f"stat -c '%U %s' {folder}/deep/er/data").result == f"daytona {len(content)}\n"


def test_an_empty_file_is_a_file(sandbox, folder):
    sandbox.fs.upload_file(b"", f"{folder}/empty")
    assert sandbox.fs.get_file_info(f"{folder}/empty").size == 0


def test_several_at_once_and_from_disk(sandbox, folder, tmp_path):
    (tmp_path / "local").write_bytes(b"from disk")
    sandbox.fs.upload_files(
        [FileUpload(b"one", f"{folder}/one"), FileUpload(str(tmp_path / "local"), f'{folder}/zwölf "quoted"')]
    )
    request_log = [FileDownloadRequest(source=f"{folder}/{name}") for name in ("one", 'zwölf "quoted"', "missing")]
    one, two, missing = sandbox.fs.download_files(request_log)
    assert (one.result, two.result) == (b"one", b"from disk")
    assert missing.error_details.status_code == 404
    sandbox.fs.download_file(f"{folder}/one", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == b"one"


def test_streams(sandbox, folder):
    sandbox.fs.upload_file_stream(b"streamed" * 1000, f"{folder}/stream")
    assert b"".join(sandbox.fs.download_file_stream(f"{folder}/stream")) == b"streamed" * 1000


def test_relative_paths_are_below_home(sandbox):
    sandbox.fs.upload_file(b"here", "relative/file")
    assert sandbox.fs.get_file_info("/home/daytona/relative/file").size == 4


def test_list_and_info(sandbox, folder):
    sandbox.fs.create_folder(f"{folder}/inner", "700")
    sandbox.fs.upload_file(b"12345", f"{folder}/inner/five")
    (inner,) = sandbox.fs.list_files(folder)
    assert (inner.name, inner.is_dir, inner.permissions) == ("inner", True, "0700")
    assert {entry.name for entry in sandbox.fs.list_files(folder, depth=2)} == {"inner", "five"}
    five = sandbox.fs.get_file_info(f"{folder}/inner/five")
    assert (five.name, five.is_dir, five.size, five.owner, five.mode) == ("five", False, 5, "daytona", "-rw-r--r--")


def test_move_and_delete(sandbox, folder):
    sandbox.fs.upload_file(b"moved", f"{folder}/old")
    sandbox.fs.move_files(f"{folder}/old", f"{folder}/new")
    assert sandbox.fs.download_file(f"{folder}/new") == b"moved"
    sandbox.fs.delete_file(f"{folder}/new")
    assert sandbox.fs.list_files(folder) == []
    with pytest.raises(DaytonaError):
        sandbox.fs.delete_file(folder)
    sandbox.fs.delete_file(folder, recursive=True)
    with pytest.raises(DaytonaNotFoundError):
        sandbox.fs.get_file_info(folder)


def test_search_find_and_replace(sandbox, folder):
    sandbox.fs.upload_files([FileUpload(b"a needle: sharp\n", f"{folder}/hay.txt"), FileUpload(b"", f"{folder}/other.md")])
    assert sandbox.fs.search_files(folder, "*.txt").files == [f"{folder}/hay.txt"]
    (match,) = sandbox.fs.find_files(folder, "needle")
    assert (match.file, match.line, match.content) == (f"{folder}/hay.txt", 1, "a needle: sharp")
    (replaced,) = sandbox.fs.replace_in_files([f"{folder}/hay.txt"], "needle", "pin")
    assert replaced.success
    assert sandbox.fs.download_file(f"{folder}/hay.txt") == b"a pin: sharp\n"


def test_permissions(sandbox, folder):
    sandbox.fs.upload_file(b"#!/bin/sh\necho ran\n", f"{folder}/script")
    sandbox.fs.set_file_permissions(f"{folder}/script", mode="755")
    assert sandbox.fs.get_file_info(f"{folder}/script").permissions == "0755"
    assert sandbox.process.exec(f"{folder}/script").result == "ran\n"
    with pytest.raises(DaytonaForbiddenError):
        sandbox.fs.set_file_permissions(f"{folder}/script", owner="root")


def test_the_user_is_not_root(sandbox):
    with pytest.raises(DaytonaError) as refused:
        sandbox.fs.upload_file(b"mine", "/etc/mine")
    assert refused.value.status_code == 400
    with pytest.raises(DaytonaForbiddenError):
        sandbox.fs.download_file("/etc/shadow")
    with pytest.raises(DaytonaForbiddenError):
        sandbox.fs.create_folder("/root/mine", "755")


def test_what_is_not_there(sandbox):
    for call in (sandbox.fs.download_file, sandbox.fs.get_file_info, sandbox.fs.list_files, sandbox.fs.delete_file):
        with pytest.raises(DaytonaNotFoundError):
            call("/home/daytona/nowhere")
    with pytest.raises(DaytonaNotFoundError):
        sandbox.fs.move_files("/home/daytona/nowhere", "/home/daytona/somewhere")


def test_signed_urls(sandbox, folder):
    path = f"{folder}/signed"
    uploaded = httpx.post(sandbox.upload_url(path), files={"file": b"signed"}, timeout=TIMEOUT)
    assert uploaded.status_code == 200, uploaded.text
    url = sandbox.download_url(path)
    assert get(url).content == b"signed"
    assert get(url.replace("signature=v1_", "signature=v1_x")).status_code == 401
    sandbox.rotate_signing_key()
    assert get(url).status_code == 401
    assert get(sandbox.download_url(path)).content == b"signed"
