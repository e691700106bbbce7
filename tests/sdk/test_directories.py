"""Directories and entries: listing, facts about them, renaming, removing."""

from datetime import datetime, timedelta, timezone

import pytest
from e2b import FileNotFoundException, FileType, InvalidArgumentException


def paths(entries):
    return sorted(entry.path for entry in entries)


@pytest.fixture
def tree(sandbox, folder):
    """a/b/c.txt, a/top.txt and an empty directory beside it."""
    sandbox.files.write_files([{"path": f"{folder}/a/b/c.txt", "data": "c"}, {"path": f"{folder}/a/top.txt", "data": "top"}])
    sandbox.files.make_dir(f"{folder}/empty")
    return folder


def test_list_goes_as_deep_as_asked(sandbox, tree):
    assert paths(sandbox.files.list(tree)) == [f"{tree}/a", f"{tree}/empty"]
    assert paths(sandbox.files.list(tree, depth=2)) == [f"{tree}/a", f"{tree}/a/b", f"{tree}/a/top.txt", f"{tree}/empty"]
    assert paths(sandbox.files.list(tree, depth=3)) == paths(sandbox.files.list(tree, depth=9)) == [
        f"{tree}/a", f"{tree}/a/b", f"{tree}/a/b/c.txt", f"{tree}/a/top.txt", f"{tree}/empty",
    ]  # fmt: skip
    assert sandbox.files.list(f"{tree}/empty") == []


def test_list_tells_kinds_and_sizes(sandbox, tree):
    entries = {entry.name: entry for entry in sandbox.files.list(f"{tree}/a")}
    assert (entries["b"].type, entries["top.txt"].type, entries["top.txt"].size) == (FileType.DIR, FileType.FILE, 3)


def test_list_of_the_home_by_its_short_name(sandbox, tree):
    name = tree.rpartition("/")[2]
    assert tree in paths(sandbox.files.list("~"))
    assert paths(sandbox.files.list(name)) == [f"{tree}/a", f"{tree}/empty"]


def test_list_of_ten_thousand_files_is_whole(sandbox, folder):
    sandbox.commands.run("seq -f 'file-%g' 1 10000 | xargs touch", cwd=folder, timeout=250)
    assert len(sandbox.files.list(folder, request_timeout=250)) == 10_000


def test_listing_what_is_not_there_or_no_directory(sandbox, tree):
    with pytest.raises(FileNotFoundException):
        sandbox.files.list(f"{tree}/nothing")
    with pytest.raises(InvalidArgumentException, match="not a directory"):
        sandbox.files.list(f"{tree}/a/top.txt")


def test_info_of_a_file(sandbox, tree):
    info = sandbox.files.get_info(f"{tree}/a/top.txt")
    assert (info.name, info.path, info.type, info.size) == ("top.txt", f"{tree}/a/top.txt", FileType.FILE, 3)
    assert (info.mode, info.permissions) == (0o644, "-rw-r--r--")
    assert (info.owner, info.group, info.symlink_target) == ("user", "user", None)
    modified = info.modified_time if info.modified_time.tzinfo else info.modified_time.replace(tzinfo=timezone.utc)
    assert abs(datetime.now(timezone.utc) - modified) < timedelta(minutes=5)


def test_info_of_a_directory(sandbox, tree):
    info = sandbox.files.get_info(f"{tree}/a")
    assert (info.name, info.type, info.mode, info.permissions) == ("a", FileType.DIR, 0o755, "drwxr-xr-x")


def test_info_of_a_symbolic_link_tells_its_target(sandbox, tree):
    sandbox.commands.run(f"ln -s {tree}/a/top.txt {tree}/link")
    info = sandbox.files.get_info(f"{tree}/link")
    assert (info.name, info.path, info.type) == ("link", f"{tree}/link", FileType.FILE)
    assert info.symlink_target == f"{tree}/a/top.txt"
    assert sandbox.files.read(f"{tree}/link") == "top"


def test_info_of_what_is_not_there_is_not_found(sandbox, folder):
    with pytest.raises(FileNotFoundException):
        sandbox.files.get_info(f"{folder}/nothing")


def test_exists(sandbox, tree):
    assert sandbox.files.exists(tree)
    assert sandbox.files.exists(f"{tree}/a/top.txt")
    assert not sandbox.files.exists(f"{tree}/nothing")
    assert not sandbox.files.exists(f"{tree}/a/nothing/at/all")


def test_making_a_directory_twice_says_it_was_there(sandbox, folder):
    assert sandbox.files.make_dir(f"{folder}/x/y/z") is True
    assert sandbox.files.make_dir(f"{folder}/x/y/z") is False
    assert sandbox.files.get_info(f"{folder}/x").owner == "user"


def test_making_a_directory_over_a_file_is_refused(sandbox, tree):
    with pytest.raises(InvalidArgumentException):
        sandbox.files.make_dir(f"{tree}/a/top.txt")


def test_rename_moves_a_file(sandbox, tree):
    info = sandbox.files.rename(f"{tree}/a/top.txt", f"{tree}/empty/moved.txt")
    assert (info.name, info.path, info.type) == ("moved.txt", f"{tree}/empty/moved.txt", FileType.FILE)
    assert sandbox.files.read(f"{tree}/empty/moved.txt") == "top"
    assert not sandbox.files.exists(f"{tree}/a/top.txt")


def test_rename_moves_a_directory_with_its_content(sandbox, tree):
    assert sandbox.files.rename(f"{tree}/a", f"{tree}/z").type == FileType.DIR
    assert sandbox.files.read(f"{tree}/z/b/c.txt") == "c"


def test_rename_of_what_is_not_there_is_not_found(sandbox, tree):
    with pytest.raises(FileNotFoundException):
        sandbox.files.rename(f"{tree}/nothing", f"{tree}/other")


def test_remove_takes_files_and_whole_directories(sandbox, tree):
    sandbox.files.remove(f"{tree}/a/top.txt")
    assert not sandbox.files.exists(f"{tree}/a/top.txt")
    sandbox.files.remove(f"{tree}/a")
    assert paths(sandbox.files.list(tree)) == [f"{tree}/empty"]


def test_removing_what_is_not_there_is_no_error(sandbox, folder):
    sandbox.files.remove(f"{folder}/nothing")


def test_removing_a_link_leaves_its_target(sandbox, tree):
    sandbox.commands.run(f"ln -s {tree}/a {tree}/link")
    sandbox.files.remove(f"{tree}/link")
    assert sandbox.files.exists(f"{tree}/a/b/c.txt")
