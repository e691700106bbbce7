"""Watching directories."""

import pytest
from e2b import FileNotFoundException, InvalidArgumentException, NotFoundException
from e2b import FilesystemEventType as Event
from e2b.exceptions import SandboxException

from both_kinds import Blocking, Watch


def test_one_new_small_file_is_create_chmod_write(sandbox, folder):
    watch = Watch(sandbox, folder)
    sandbox.files.write(f"{folder}/new.txt", "small")
    # Events come in order, so after the last file's event none of the first one's can be on its way.
    sandbox.commands.run(f"mkdir {folder}/last")
    watch.until("last")
    assert watch.types_of("new.txt") == [Event.CREATE, Event.CHMOD, Event.WRITE]
    watch.stop()


def test_changes_of_every_kind_are_seen(sandbox, folder):
    sandbox.files.write(f"{folder}/old", "x")
    watch = Watch(sandbox, folder)
    sandbox.commands.run("echo more >> old; chmod 600 old; mv old renamed; rm renamed; mkdir last", cwd=folder)
    watch.until("last")
    kinds = watch.types_of("old") + watch.types_of("renamed")
    assert [kind for kind in (Event.WRITE, Event.CHMOD, Event.RENAME, Event.REMOVE) if kind not in kinds] == []
    watch.stop()


def test_plain_watch_does_not_look_into_subdirectories(sandbox, folder):
    sandbox.files.make_dir(f"{folder}/sub")
    watch = Watch(sandbox, folder)
    sandbox.files.write(f"{folder}/sub/inner", "x")
    sandbox.commands.run(f"mkdir {folder}/last")
    assert [event.name for event in watch.until("last") if "inner" in event.name] == []
    watch.stop()


def test_recursive_watch_sees_old_and_new_subdirectories(sandbox, folder):
    sandbox.files.make_dir(f"{folder}/old/deep")
    watch = Watch(sandbox, folder, recursive=True)
    sandbox.files.write(f"{folder}/old/deep/file", "x")
    watch.until("old/deep/file")
    sandbox.files.make_dir(f"{folder}/new")
    watch.until("new")
    sandbox.files.write(f"{folder}/new/file", "x")
    watch.until("new/file")
    assert Event.CREATE in watch.types_of("new/file")
    watch.stop()


def test_recursive_watch_misses_nothing_in_a_tree_made_at_once(sandbox, folder):
    watch = Watch(sandbox, folder, recursive=True)
    sandbox.commands.run("mkdir -p a/b/c && echo x > a/b/c/file", cwd=folder)
    watch.until("a/b/c/file")
    watch.stop()


def test_entry_comes_with_the_event_when_asked(sandbox, folder):
    watch = Watch(sandbox, folder, include_entry=True)
    sandbox.files.write(f"{folder}/e.txt", "four")
    sandbox.commands.run(f"mkdir {folder}/last")
    entries = [event.entry for event in watch.until("last") if event.name == "e.txt"]
    assert [entry.path for entry in entries] == [f"{folder}/e.txt"] * 3
    assert entries[-1].size == 4
    watch.stop()


def test_no_entry_comes_unless_asked(sandbox, folder):
    watch = Watch(sandbox, folder)
    sandbox.commands.run(f"mkdir {folder}/last")
    assert [event.entry for event in watch.until("last")] == [None]
    watch.stop()


def test_stopped_watch_gives_no_events(sandbox, folder):
    watch = Watch(sandbox, folder)
    watch.stop()
    sandbox.files.write(f"{folder}/after", "x")
    if isinstance(sandbox, Blocking):
        assert watch.events() == []
    else:
        with pytest.raises(SandboxException):
            watch.events()


def test_two_watches_do_not_steal_from_each_other(sandbox, folder):
    first, second = Watch(sandbox, folder), Watch(sandbox, folder)
    sandbox.commands.run(f"mkdir {folder}/last")
    first.until("last")
    second.until("last")
    first.stop()
    second.stop()


def test_watching_what_is_not_there_is_not_found(sandbox, folder):
    with pytest.raises(FileNotFoundException):
        Watch(sandbox, f"{folder}/nothing")
    assert issubclass(FileNotFoundException, NotFoundException)


def test_watching_a_file_is_refused(sandbox, folder):
    sandbox.files.write(f"{folder}/file", "x")
    with pytest.raises(InvalidArgumentException, match="not a directory"):
        Watch(sandbox, f"{folder}/file")
