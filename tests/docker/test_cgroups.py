"""What a killed daemon leaves in its cgroups can be removed, whatever state it is in; else every test after it would pay."""

import subprocess
from pathlib import Path

import pytest

import cgroups
import processes

ROOT = Path("/sys/fs/cgroup")
# The newer interface freezes by `cgroup.freeze`, the older one in a hierarchy of its own.
FREEZERS = {"cgroup.freeze": "1", "freezer.state": "FROZEN"}


@pytest.fixture
def sleeper():
    process = subprocess.Popen(["sleep", "1000"])
    yield process
    process.kill()
    process.wait()


def tops():
    """The root of every hierarchy that processes can be put into; where there is one for all, what is below it is others'."""
    if (ROOT / "cgroup.procs").exists():
        return [ROOT]
    return [top for top in ROOT.iterdir() if (top / "cgroup.procs").exists() and not top.is_symlink()]


def test_frozen_processes_do_not_keep_it(sleeper):
    name, frozen = f"sandyard-test-{sleeper.pid}", 0
    for top in tops():
        folder = top / name / "one" / "inner"
        folder.mkdir(parents=True)
        # A set of processors and memory must be chosen in the oldest hierarchy before anybody may enter; not needed here.
        if (folder / "cpuset.cpus").exists():
            continue
        (folder / "cgroup.procs").write_text(str(sleeper.pid))
        for file, word in FREEZERS.items():
            if (folder / file).exists():
                (folder / file).write_text(word)
                frozen += 1
    assert frozen, "there is something that can freeze"
    cgroups.remove(name)
    assert not [top for top in tops() if (top / name).exists()]
    assert sleeper.wait(60) == -9
    assert not processes.is_alive(sleeper.pid)


def test_nothing_to_remove_is_fine():
    cgroups.remove("sandyard-test-never-made")
