"""Volumes: made, found, mounted, with content that outlives sandboxes and can be reached without one."""

import io

import pytest
from e2b import VolumeFileType, VolumeNotFoundException, VolumePathNotFoundException
from e2b.exceptions import NotFoundException, VolumeException


@pytest.fixture
def new_volume(half, mark):
    """Makes volumes that are gone after the test."""
    created = []

    def new_volume(suffix=""):
        created.append(half.Volume.create(f"{mark}{suffix}"))
        return created[-1]

    yield new_volume
    for volume in created:
        half.Volume.destroy(volume.volume_id)


@pytest.fixture
def volume(new_volume):
    return new_volume()


@pytest.fixture
def make(new_volume, make):
    """Sandboxes that go before the volumes in them."""
    return make


def test_volume_is_made_found_listed_and_destroyed(half, new_volume, mark):
    volume = new_volume()
    assert volume.name == mark and volume.volume_id and volume.token
    info = half.Volume.get_info(volume.volume_id)
    assert (info.volume_id, info.name) == (volume.volume_id, mark)
    assert info.token
    assert (volume.volume_id, mark) in [(one.volume_id, one.name) for one in half.Volume.list()]
    repeated = half.Volume.connect(volume.volume_id)
    volume.write_file("/x", "seen by both")
    assert (repeated.name, repeated.read_file("/x")) == (mark, "seen by both")
    assert half.Volume.destroy(volume.volume_id) is True
    assert half.Volume.destroy(volume.volume_id) is False
    assert volume.volume_id not in [one.volume_id for one in half.Volume.list()]
    with pytest.raises(VolumeNotFoundException):
        half.Volume.get_info(volume.volume_id)
    with pytest.raises(VolumeNotFoundException):
        half.Volume.connect(volume.volume_id)


def test_name_is_taken_once(half, volume, mark):
    with pytest.raises(VolumeException):
        half.Volume.create(mark)


@pytest.mark.parametrize("name", ["", "with space", "a/b", "..", "x" * 300])
def test_names_that_cannot_be_are_refused(half, name):
    with pytest.raises(VolumeException):
        half.Volume.create(name)


def test_content_goes_in_and_out_in_every_form(volume):
    assert volume.write_file("/text", "žluťoučký\n").size == len("žluťoučký\n".encode())
    assert volume.read_file("/text") == "žluťoučký\n"
    data = bytes(range(256)) * 20_000
    for form in (data, io.BytesIO(data)):
        volume.write_file("/bytes", form)
        assert bytes(volume.read_file("/bytes", format="bytes")) == data
    assert b"".join(volume.read_file("/bytes", format="stream")) == data
    volume.write_file("/text", "again", force=True)
    assert volume.read_file("/text") == "again"


def test_entries_are_listed_with_their_facts(volume):
    created = volume.make_dir("/a", mode=0o700)
    assert (created.name, created.type, created.path, created.mode & 0o777) == ("a", VolumeFileType.DIRECTORY, "/a", 0o700)
    volume.make_dir("/a/b/c", force=True)
    volume.write_file("/a/file", "12345", mode=0o640, uid=1000, gid=1000)
    info = volume.get_info("/a/file")
    assert (info.name, info.type, info.size, info.mode & 0o777) == ("file", VolumeFileType.FILE, 5, 0o640)
    assert (info.uid, info.gid) == (1000, 1000)
    assert info.mtime and info.ctime and info.atime
    assert sorted(entry.path for entry in volume.list("/")) == ["/a"]
    assert sorted(entry.path for entry in volume.list("/", depth=3)) == ["/a", "/a/b", "/a/b/c", "/a/file"]


def test_metadata_is_changed(volume):
    volume.write_file("/f", "x")
    changed = volume.update_metadata("/f", mode=0o600, uid=1234, gid=4321)
    assert (changed.mode & 0o777, changed.uid, changed.gid) == (0o600, 1234, 4321)
    assert volume.get_info("/f").uid == 1234


def test_entries_are_removed(volume):
    volume.write_file("/dir/file", "x", force=True)
    assert volume.exists("/dir/file") is True
    volume.remove("/dir/file")
    assert volume.exists("/dir/file") is False
    volume.remove("/dir")
    assert volume.list("/") == []


def test_missing_paths_are_not_found(volume):
    for call in (
        lambda: volume.read_file("/nothing"),
        lambda: list(volume.read_file("/nothing", format="stream")),
        lambda: volume.get_info("/nothing"),
        lambda: volume.list("/nothing"),
        lambda: volume.remove("/nothing"),
        lambda: volume.update_metadata("/nothing", mode=0o600),
        lambda: volume.make_dir("/no/parent"),
    ):
        with pytest.raises(VolumePathNotFoundException):
            call()
    assert issubclass(VolumePathNotFoundException, NotFoundException)


@pytest.mark.parametrize("path", ["/../escape", "/a/../../escape", "../escape"])
def test_no_path_leads_out(volume, path):
    with pytest.raises((VolumeException, NotFoundException)):
        volume.read_file(f"{path}/etc/passwd")


def test_symbolic_links_lead_nowhere_outside(server, make, volume, mark):
    planted = server.data.path / "planted"
    planted.write_text(mark)
    sandbox = make(volume_mounts={"/mnt/data": volume})
    sandbox.commands.run(f"ln -s {planted} /mnt/data/link; ln -s / /mnt/data/root", user="root")
    for path in ("/link", f"/root{planted}"):
        with pytest.raises((VolumeException, NotFoundException)):
            volume.read_file(path)
        with pytest.raises((VolumeException, NotFoundException)):
            volume.write_file(path, "overwritten")
    assert planted.read_text() == mark
    assert volume.get_info("/link").target == str(planted)
    planted.unlink()


def test_volume_in_use_is_not_destroyed(half, make, volume):
    sandbox = make(volume_mounts={"/mnt/data": volume})
    with pytest.raises(VolumeException, match=sandbox.sandbox_id):
        half.Volume.destroy(volume.volume_id)
    sandbox.kill()
    assert half.Volume.destroy(volume.volume_id) is True


def test_mounted_volume_is_shared_and_outlives_sandboxes(half, make, new_volume, mark):
    volume = new_volume()
    volume.write_file("/from-outside", "outside\n")
    first = make(volume_mounts={"/mnt/data": volume})
    assert first.get_info().volume_mounts == [{"name": mark, "path": "/mnt/data"}]
    assert first.files.read("/mnt/data/from-outside") == "outside\n"
    first.commands.run("echo inside > /mnt/data/from-inside", user="root")
    assert volume.read_file("/from-inside") == "inside\n"
    second = make(volume_mounts={"/other/place": mark})
    assert second.files.read("/other/place/from-inside") == "inside\n"
    first.kill()
    assert second.commands.run("cat /other/place/*").stdout == "inside\noutside\n"
    second.pause()
    volume.write_file("/while-paused", "paused\n")
    assert second.connect().files.read("/other/place/while-paused") == "paused\n"


def test_two_volumes_in_one_sandbox(make, new_volume):
    one, two = new_volume("-one"), new_volume("-two")
    one.write_file("/name", "one")
    two.write_file("/name", "two")
    sandbox = make(volume_mounts={"/mnt/one": one, "/mnt/two": two})
    assert [sandbox.files.read(f"/mnt/{name}/name") for name in ("one", "two")] == ["one", "two"]


def test_mounting_what_is_not_there_is_refused(half):
    with pytest.raises(Exception, match="no-such-volume"):
        half.Sandbox.create(volume_mounts={"/mnt/data": "no-such-volume"})


def test_volumes_of_others_are_not_there(half, volume, mark, other_user):
    client = half.client(**other_user.connection)
    assert volume.volume_id not in [one.volume_id for one in client.Volume.list()]
    with pytest.raises(VolumeNotFoundException):
        client.Volume.get_info(volume.volume_id)
    assert client.Volume.destroy(volume.volume_id) is False
    with pytest.raises(Exception, match=mark):
        client.Sandbox.create(volume_mounts={"/mnt/data": mark})


def test_token_of_one_volume_does_not_open_another(half, new_volume):
    one, two = new_volume("-one"), new_volume("-two")
    two.write_file("/x", "secret")
    for token in (one.token, "wrong"):
        with pytest.raises(Exception) as raised:
            two.read_file("/x", token=token)
        assert "secret" not in str(raised.value)
