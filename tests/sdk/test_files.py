"""Reading and writing files: every form of content, and what goes wrong."""

import io
import os

import pytest
from e2b import FileNotFoundException, FileType, InvalidArgumentException, NotFoundException

from both_kinds import Blocking

MEBIBYTE = 1024 * 1024


def test_text_comes_back(sandbox, folder):
    info = sandbox.files.write(f"{folder}/a.txt", "hello\n")
    assert (info.name, info.path, info.type) == ("a.txt", f"{folder}/a.txt", FileType.FILE)
    assert sandbox.files.read(f"{folder}/a.txt") == "hello\n"


def test_bytes_come_back_unchanged(sandbox, folder):
    data = bytes(range(256)) * 100 + b"\r\n--boundary--\r\n"
    sandbox.files.write(f"{folder}/a.bin", data)
    assert bytes(sandbox.files.read(f"{folder}/a.bin", format="bytes")) == data


def test_unicode_text_comes_back(sandbox, folder):
    sandbox.files.write(f"{folder}/u.txt", "žluťoučký 日本語 🐎")
    assert sandbox.files.read(f"{folder}/u.txt") == "žluťoučký 日本語 🐎"


@pytest.mark.parametrize("content", [io.BytesIO, lambda data: io.TextIOWrapper(io.BytesIO(data))], ids=["binary", "text"])
def test_file_like_object_is_written(sandbox, folder, content):
    data = b"line\n" * 300_000
    sandbox.files.write(f"{folder}/f", content(data))
    assert bytes(sandbox.files.read(f"{folder}/f", format="bytes")) == data


def test_large_file_is_read_as_a_stream(sandbox, folder):
    data = os.urandom(MEBIBYTE) * 24
    sandbox.files.write(f"{folder}/big", data)
    chunks = list(sandbox.files.read(f"{folder}/big", format="stream"))
    assert len(chunks) > 1
    assert b"".join(chunks) == data


def test_download_may_be_left_in_the_middle(sandbox, folder):
    sandbox.files.write(f"{folder}/big", b"x" * 16 * MEBIBYTE)
    reader = sandbox.files.read(f"{folder}/big", format="stream")
    assert next(iter(reader))
    # The two halves name it differently.
    getattr(reader, "aclose" if isinstance(sandbox, Blocking) else "close")()
    assert sandbox.commands.run("echo fine").stdout == "fine\n"


def test_empty_file_is_a_file(sandbox, folder):
    sandbox.files.write(f"{folder}/empty", "")
    assert sandbox.files.read(f"{folder}/empty") == ""
    assert bytes(sandbox.files.read(f"{folder}/empty", format="bytes")) == b""
    assert b"".join(sandbox.files.read(f"{folder}/empty", format="stream")) == b""
    assert sandbox.files.get_info(f"{folder}/empty").size == 0


def test_writing_again_replaces_the_whole_content(sandbox, folder):
    sandbox.files.write(f"{folder}/a", "a long first version")
    sandbox.files.write(f"{folder}/a", "short")
    assert sandbox.files.read(f"{folder}/a") == "short"


def test_missing_directories_are_made_and_owned_by_the_user(sandbox, folder):
    sandbox.files.write(f"{folder}/one/two/three.txt", "deep")
    assert sandbox.files.read(f"{folder}/one/two/three.txt") == "deep"
    for path in ("one", "one/two", "one/two/three.txt"):
        assert sandbox.files.get_info(f"{folder}/{path}").owner == "user"


def test_file_is_owned_by_the_user_who_writes(sandbox, folder):
    sandbox.files.write(f"{folder}/mine", "x")
    sandbox.files.write(f"{folder}/roots", "x", user="root")
    assert [sandbox.files.get_info(f"{folder}/{name}").owner for name in ("mine", "roots")] == ["user", "root"]


def test_many_files_are_written_at_once(sandbox, folder):
    files = [{"path": f"{folder}/d{n % 5}/f{n}", "data": f"content {n}"} for n in range(60)]
    infos = sandbox.files.write_files(files)
    assert [info.path for info in infos] == [file["path"] for file in files]
    assert all(sandbox.files.read(file["path"]) == file["data"] for file in files)


def test_text_bytes_and_streams_go_in_one_call(sandbox, folder):
    sandbox.files.write_files(
        [
            {"path": f"{folder}/text", "data": "t"},
            {"path": f"{folder}/bytes", "data": b"\xff"},
            {"path": f"{folder}/stream", "data": io.BytesIO(b"s")},
        ]
    )
    contents = [bytes(sandbox.files.read(f"{folder}/{name}", format="bytes")) for name in ("text", "bytes", "stream")]
    assert contents == [b"t", b"\xff", b"s"]


def test_no_files_is_nothing_to_do(sandbox):
    assert sandbox.files.write_files([]) == []


def test_relative_paths_are_the_users_home(sandbox):
    name = "relative-path.txt"
    assert sandbox.files.write(name, "home").path == f"/home/user/{name}"
    assert sandbox.files.read(f"/home/user/{name}") == sandbox.files.read(f"~/{name}") == "home"
    sandbox.files.remove(f"./{name}")
    assert not sandbox.files.exists(name)


def test_home_is_the_named_users(sandbox):
    assert sandbox.files.write("~/roots.txt", "x", user="root").path == "/root/roots.txt"
    assert sandbox.files.get_info("roots.txt", user="root").owner == "root"
    sandbox.files.remove("roots.txt", user="root")


@pytest.mark.parametrize("name", ["with space", "ünï ☃ 日本", "a+b&c=d?e#f%20", "quote'\"s", "semi;colon", "-dash", "back\\slash"])
def test_odd_names_are_just_names(sandbox, folder, name):
    info = sandbox.files.write(f"{folder}/{name}", name)
    assert (info.name, info.path) == (name, f"{folder}/{name}")
    assert sandbox.files.read(f"{folder}/{name}") == name
    assert [entry.name for entry in sandbox.files.list(folder)] == [name]


def test_reading_what_is_not_there_is_not_found(sandbox, folder):
    for form in ("text", "bytes", "stream"):
        with pytest.raises(FileNotFoundException, match="does not exist"):
            sandbox.files.read(f"{folder}/nothing", format=form)
    assert issubclass(FileNotFoundException, NotFoundException)


def test_a_directory_cannot_be_read_or_written_as_a_file(sandbox, folder):
    with pytest.raises(InvalidArgumentException, match="directory"):
        sandbox.files.read(folder)
    with pytest.raises(InvalidArgumentException, match="directory"):
        sandbox.files.write(folder, "x")


@pytest.mark.parametrize("as_user", [None, "root"])
def test_octet_stream_upload(sandbox, folder, as_user):
    data = os.urandom(3 * MEBIBYTE)
    sandbox.files.write(f"{folder}/o", data, use_octet_stream=True, user=as_user)
    assert bytes(sandbox.files.read(f"{folder}/o", format="bytes", user=as_user)) == data


def test_gzip_in_both_directions(sandbox, folder):
    data = b"compress me " * 200_000
    sandbox.files.write(f"{folder}/z", data, gzip=True)
    assert sandbox.files.get_info(f"{folder}/z").size == len(data), "stored uncompressed"
    assert bytes(sandbox.files.read(f"{folder}/z", format="bytes", gzip=True)) == data
    assert b"".join(sandbox.files.read(f"{folder}/z", format="stream", gzip=True)) == data


def test_gzip_of_a_stream(sandbox, folder):
    sandbox.files.write(f"{folder}/z", io.BytesIO(b"z" * MEBIBYTE), gzip=True)
    assert sandbox.files.read(f"{folder}/z", gzip=True) == "z" * MEBIBYTE


def test_metadata_is_kept_as_extended_attributes(sandbox, folder, agent):
    info = sandbox.files.write(f"{folder}/m", "x", metadata={"author": "ada", "Review": "by Bob, twice"})
    expected = {"author": "ada", "review": "by Bob, twice"}
    assert info.metadata == expected
    assert sandbox.files.get_info(f"{folder}/m").metadata == expected
    assert [entry.metadata for entry in sandbox.files.list(folder)] == [expected]
    assert sandbox.files.rename(f"{folder}/m", f"{folder}/n").metadata == expected
    on_disk = agent.home / folder.removeprefix("/home/user/") / "n"
    assert os.getxattr(on_disk, "user.e2b.author") == b"ada"


def test_metadata_goes_with_octet_streams_and_many_files(sandbox, folder):
    sandbox.files.write(f"{folder}/o", b"x", metadata={"k": "v"}, use_octet_stream=True)
    sandbox.files.write_files([{"path": f"{folder}/{n}", "data": n} for n in "ab"], metadata={"k": "v"})
    assert [entry.metadata for entry in sandbox.files.list(folder)] == [{"k": "v"}] * 3


def test_file_without_metadata_has_none(sandbox, folder):
    sandbox.files.write(f"{folder}/plain", "x")
    assert sandbox.files.get_info(f"{folder}/plain").metadata is None
