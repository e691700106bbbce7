"""Files and directories through the server: every form of content, facts about entries, watching."""

import io
import os

import pytest
from e2b import FileNotFoundException, FileType, InvalidArgumentException
from e2b import FilesystemEventType as Event

from streams import Watch

MEBIBYTE = 1024 * 1024


def names(entries):
    return sorted(entry.name for entry in entries)


@pytest.mark.parametrize("content", ["hello\n", "", "žluťoučký 日本語 🐎"])
def test_text_comes_back(sandbox, folder, content):
    info = sandbox.files.write(f"{folder}/a.txt", content)
    assert (info.name, info.path, info.type) == ("a.txt", f"{folder}/a.txt", FileType.FILE)
    assert sandbox.files.read(f"{folder}/a.txt") == content


def test_bytes_and_streams_come_back_unchanged(sandbox, folder):
    data = os.urandom(MEBIBYTE) * 8
    for form in (data, io.BytesIO(data)):
        sandbox.files.write(f"{folder}/big", form)
        assert bytes(sandbox.files.read(f"{folder}/big", format="bytes")) == data
    chunks = list(sandbox.files.read(f"{folder}/big", format="stream"))
    assert len(chunks) > 1 and b"".join(chunks) == data


def test_gzip_and_octet_streams(sandbox, folder):
    data = b"compress me " * 100_000
    sandbox.files.write(f"{folder}/z", data, gzip=True)
    assert sandbox.files.get_info(f"{folder}/z").size == len(data), "stored uncompressed"
    assert bytes(sandbox.files.read(f"{folder}/z", format="bytes", gzip=True)) == data
    sandbox.files.write(f"{folder}/o", data, use_octet_stream=True)
    assert sandbox.files.read(f"{folder}/o", user="root") == data.decode()


def test_many_files_are_written_at_once(sandbox, folder):
    files = [{"path": f"{folder}/d{n % 3}/f{n}", "data": f"content {n}"} for n in range(20)]
    files.append({"path": f"{folder}/bytes", "data": b"\xff"})
    infos = sandbox.files.write_files(files)
    assert [info.path for info in infos] == [file["path"] for file in files]
    assert all(sandbox.files.read(file["path"]) == file["data"] for file in files[:-1])
    assert sandbox.files.write_files([]) == []


def test_metadata_is_kept(sandbox, folder):
    info = sandbox.files.write(f"{folder}/m", "x", metadata={"author": "ada", "note": "by Bob, twice"})
    expected = {"author": "ada", "note": "by Bob, twice"}
    assert info.metadata == expected
    assert sandbox.files.get_info(f"{folder}/m").metadata == expected
    assert [entry.metadata for entry in sandbox.files.list(folder)] == [expected]
    assert sandbox.files.rename(f"{folder}/m", f"{folder}/n").metadata == expected
    sandbox.files.write_files([{"path": f"{folder}/p", "data": "x"}], metadata={"k": "v"})
    assert sandbox.files.get_info(f"{folder}/p").metadata == {"k": "v"}
    sandbox.files.write(f"{folder}/p", "y")
    assert not sandbox.files.get_info(f"{folder}/p").metadata, "an upload replaces all of it"


def test_owner_home_and_parents(sandbox, folder):
    sandbox.files.write(f"{folder}/one/two/three", "x")
    sandbox.files.write(f"{folder}/roots", "x", user="root")
    owners = [sandbox.files.get_info(f"{folder}/{path}").owner for path in ("one", "one/two/three", "roots")]
    assert owners == ["user", "user", "root"]
    name = folder.rpartition("/")[2]
    assert sandbox.files.write(f"{name}/relative", "x").path == f"{folder}/relative"
    assert sandbox.files.read(f"~/{name}/relative") == "x"


@pytest.mark.parametrize("name", ["with space", "ünï ☃", "a+b&c=d?e#f%20", "quote'\"s", "back\\slash"])
def test_odd_names_are_just_names(sandbox, folder, name):
    assert sandbox.files.write(f"{folder}/{name}", name).path == f"{folder}/{name}"
    assert sandbox.files.read(f"{folder}/{name}") == name
    assert names(sandbox.files.list(folder)) == [name]


def test_what_is_not_there_or_is_a_directory(sandbox, folder):
    for call in (
        lambda: sandbox.files.read(f"{folder}/nothing"),
        lambda: sandbox.files.read(f"{folder}/nothing", format="bytes"),
        lambda: list(sandbox.files.read(f"{folder}/nothing", format="stream")),
        lambda: sandbox.files.list(f"{folder}/nothing"),
        lambda: sandbox.files.get_info(f"{folder}/nothing"),
        lambda: sandbox.files.rename(f"{folder}/nothing", f"{folder}/other"),
    ):
        with pytest.raises(FileNotFoundException):
            call()
    with pytest.raises(InvalidArgumentException):
        sandbox.files.read(folder)
    with pytest.raises(InvalidArgumentException):
        sandbox.files.write(folder, "x")
    assert sandbox.files.exists(f"{folder}/nothing") is False
    sandbox.files.remove(f"{folder}/nothing")


def test_directories_are_made_listed_moved_and_removed(sandbox, folder):
    assert sandbox.files.make_dir(f"{folder}/a/b") is True
    assert sandbox.files.make_dir(f"{folder}/a/b") is False
    sandbox.files.write(f"{folder}/a/b/c", "deep")
    assert names(sandbox.files.list(folder)) == ["a"]
    assert names(sandbox.files.list(folder, depth=2)) == ["a", "b"]
    assert names(sandbox.files.list(folder, depth=5)) == ["a", "b", "c"]
    assert sandbox.files.rename(f"{folder}/a", f"{folder}/z").type == FileType.DIR
    assert sandbox.files.read(f"{folder}/z/b/c") == "deep"
    assert sandbox.files.exists(f"{folder}/z") is True
    sandbox.files.remove(f"{folder}/z")
    assert sandbox.files.list(folder) == []


def test_facts_about_an_entry(sandbox, folder):
    sandbox.files.write(f"{folder}/f", "12345")
    sandbox.commands.run(f"ln -s {folder}/f {folder}/link")
    info, link = sandbox.files.get_info(f"{folder}/f"), sandbox.files.get_info(f"{folder}/link")
    assert (info.name, info.type, info.size, info.mode, info.permissions) == ("f", FileType.FILE, 5, 0o644, "-rw-r--r--")
    assert (info.owner, info.group, info.symlink_target) == ("user", "user", None)
    assert link.symlink_target == f"{folder}/f"
    assert (link.type, link.size, link.mode, link.permissions) == (FileType.FILE, 5, 0o644, "Lrwxrwxrwx")
    sandbox.commands.run(f"rm {folder}/f; chmod 1777 {folder}")
    broken, parent = sandbox.files.get_info(f"{folder}/link"), sandbox.files.get_info(folder)
    assert (broken.type, broken.symlink_target) == (None, f"{folder}/f")
    assert parent.permissions == "dtrwxrwxrwx"


# --- watching


def test_new_file_is_create_chmod_write(sandbox, folder):
    watch = Watch(sandbox, folder)
    sandbox.files.write(f"{folder}/new.txt", "small")
    sandbox.commands.run(f"mkdir {folder}/last")
    watch.until("last")
    assert watch.types_of("new.txt") == [Event.CREATE, Event.CHMOD, Event.WRITE]
    watch.stop()


def test_changes_of_every_kind_are_seen(sandbox, folder):
    sandbox.files.write(f"{folder}/old", "x")
    watch = Watch(sandbox, folder, user="root")
    sandbox.commands.run("echo more >> old; chmod 600 old; mv old renamed; rm renamed; mkdir last", cwd=folder)
    watch.until("last")
    kinds = watch.types_of("old") + watch.types_of("renamed")
    assert [kind for kind in (Event.WRITE, Event.CHMOD, Event.RENAME, Event.REMOVE) if kind not in kinds] == []
    watch.stop()


def test_recursive_watch_follows_new_folders_and_tells_entries(sandbox, folder):
    sandbox.files.make_dir(f"{folder}/old")
    watch = Watch(sandbox, folder, recursive=True, include_entry=True)
    sandbox.files.write(f"{folder}/old/inner", "x")
    watch.until("old/inner")
    sandbox.files.make_dir(f"{folder}/new")
    watch.until("new")
    sandbox.files.write(f"{folder}/new/deep", "12345")
    events = watch.until("new/deep")
    entries = [event.entry for event in events if event.name == "new/deep" and event.entry]
    assert entries and entries[-1].path == f"{folder}/new/deep"
    watch.stop()


def test_plain_watch_stays_in_its_folder_and_stops(sandbox, folder):
    sandbox.files.make_dir(f"{folder}/sub")
    watch = Watch(sandbox, folder, allow_network_mounts=True)
    sandbox.files.write(f"{folder}/sub/inner", "x")
    sandbox.commands.run(f"mkdir {folder}/last")
    assert [event.name for event in watch.until("last") if "inner" in event.name] == []
    watch.stop()


def test_watching_what_is_no_directory_is_refused(sandbox, folder):
    sandbox.files.write(f"{folder}/file", "x")
    with pytest.raises(FileNotFoundException):
        Watch(sandbox, f"{folder}/nothing")
    with pytest.raises(InvalidArgumentException):
        Watch(sandbox, f"{folder}/file")
