"""The SDK's git helpers, against a `git daemon` and a git server over HTTP with a password, both inside the sandbox."""

from pathlib import Path

import pytest
from e2b import CommandExitException, GitAuthException, GitUpstreamException, InvalidArgumentException

from waiting import wait_for

DAEMON, HTTP = 9418, 9480
USER, PASSWORD = "ada", "s3cret"
SERVED = "/home/user/served"


@pytest.fixture(scope="session")
def remote(sandbox):
    """Servers for the repositories below `SERVED`."""
    sandbox.files.make_dir(SERVED)
    sandbox.files.write("/home/user/inside_git.py", (Path(__file__).parent / "inside_git.py").read_text())
    serve = f"exec git daemon --export-all --enable=receive-pack --listen=127.0.0.1 --base-path={SERVED}"
    sandbox.commands.run(serve, background=True, timeout=0)
    serve = f"exec python3 /home/user/inside_git.py {HTTP} {SERVED} {USER} {PASSWORD}"
    sandbox.commands.run(serve, background=True, timeout=0)
    probe = "python3 -c 'import socket; [socket.create_connection((\"127.0.0.1\", p), 9) for p in (%d, %d)]' && echo up || true"
    wait_for(lambda: sandbox.commands.run(probe % (DAEMON, HTTP)).stdout, "both servers listen")


@pytest.fixture
def url(sandbox, remote, mark):
    """An empty repository to clone from and push to, and its address at the daemon."""
    sandbox.git.init(f"{SERVED}/{mark}.git", bare=True, initial_branch="main")
    return f"git://127.0.0.1/{mark}.git"


@pytest.fixture
def private(url, mark):
    """The same repository for those who know the password."""
    return f"http://127.0.0.1:{HTTP}/{mark}.git"


@pytest.fixture
def clone(sandbox, folder, url):
    """A clone with one commit that was pushed."""
    path = f"{folder}/clone"
    sandbox.git.clone(url, path)
    sandbox.git.configure_user("Ada", "ada@example.com", scope="local", path=path)
    sandbox.files.write(f"{path}/hello", "one\n")
    sandbox.git.add(path)
    sandbox.git.commit(path, "first")
    sandbox.git.push(path, remote="origin", branch="main")
    return path


def log(sandbox, path):
    return sandbox.commands.run("git log --format='%s %an <%ae>'", cwd=path).stdout.splitlines()


def test_commits_travel_through_a_server(sandbox, folder, clone, url):
    other = f"{folder}/other"
    sandbox.git.clone(url, other, branch="main", depth=1)
    assert sandbox.files.read(f"{other}/hello") == "one\n"
    sandbox.files.write(f"{clone}/hello", "two\n")
    sandbox.git.add(clone, files=["hello"])
    sandbox.git.commit(clone, "second", author_name="Bob", author_email="bob@example.com")
    sandbox.git.push(clone)
    sandbox.git.pull(other)
    assert sandbox.files.read(f"{other}/hello") == "two\n"
    assert log(sandbox, clone) == ["second Bob <bob@example.com>", "first Ada <ada@example.com>"]


def test_status_tells_what_changed(sandbox, clone):
    clean = sandbox.git.status(clone)
    assert (clean.current_branch, clean.upstream, clean.is_clean, clean.ahead) == ("main", "origin/main", True, 0)
    sandbox.files.write(f"{clone}/hello", "changed\n")
    sandbox.files.write(f"{clone}/new", "new\n")
    status = sandbox.git.status(clone)
    assert {(file.name, file.status, file.staged) for file in status.file_status} == {
        ("hello", "modified", False),
        ("new", "untracked", False),
    }
    sandbox.git.add(clone, all=True)
    assert sandbox.git.status(clone).staged_count == 2
    sandbox.git.commit(clone, "second")
    assert sandbox.git.status(clone).ahead == 1


def test_branches_are_made_left_and_deleted(sandbox, clone):
    sandbox.git.create_branch(clone, "topic")
    branches = sandbox.git.branches(clone)
    assert (sorted(branches.branches), branches.current_branch) == (["main", "topic"], "topic")
    sandbox.git.commit(clone, "empty", allow_empty=True)
    sandbox.git.checkout_branch(clone, "main")
    with pytest.raises(CommandExitException):
        sandbox.git.delete_branch(clone, "topic")
    sandbox.git.delete_branch(clone, "topic", force=True)
    assert sandbox.git.branches(clone).branches == ["main"]


def test_reset_and_restore(sandbox, clone):
    sandbox.files.write(f"{clone}/hello", "changed\n")
    sandbox.git.add(clone)
    sandbox.git.restore(clone, ["hello"], staged=True)
    assert sandbox.git.status(clone).has_staged is False
    sandbox.git.restore(clone, ["hello"])
    assert sandbox.files.read(f"{clone}/hello") == "one\n"
    sandbox.git.commit(clone, "empty", allow_empty=True)
    sandbox.git.reset(clone, mode="hard", target="HEAD~1")
    assert len(log(sandbox, clone)) == 1
    sandbox.files.write(f"{clone}/hello", "changed\n")
    sandbox.git.add(clone)
    sandbox.git.reset(clone, paths=["hello"])
    assert sandbox.git.status(clone).has_staged is False


def test_remotes_are_added_replaced_and_read(sandbox, clone, url):
    assert sandbox.git.remote_get(clone, "origin") == url
    assert sandbox.git.remote_get(clone, "nothing") is None
    sandbox.git.remote_add(clone, "second", url, fetch=True)
    sandbox.git.remote_add(clone, "second", "git://127.0.0.1/elsewhere.git", overwrite=True)
    assert sandbox.git.remote_get(clone, "second") == "git://127.0.0.1/elsewhere.git"


def test_settings_are_written_and_read(sandbox, clone, mark):
    sandbox.git.set_config("test.mark", mark)
    assert sandbox.git.get_config("test.mark") == mark
    sandbox.git.set_config("test.mark", "local", scope="local", path=clone)
    assert sandbox.git.get_config("test.mark", scope="local", path=clone) == "local"
    assert sandbox.git.get_config("test.nothing") is None
    with pytest.raises(InvalidArgumentException):
        sandbox.git.set_config("", "x")


def test_password_opens_and_is_not_kept(sandbox, folder, clone, private):
    path = f"{folder}/private"
    sandbox.git.clone(private, path, username=USER, password=PASSWORD)
    assert sandbox.files.read(f"{path}/hello") == "one\n"
    assert sandbox.git.remote_get(path, "origin") == private
    sandbox.git.configure_user("Ada", "ada@example.com", scope="local", path=path)
    sandbox.git.commit(path, "second", allow_empty=True)
    sandbox.git.push(path, remote="origin", branch="main", username=USER, password=PASSWORD)
    sandbox.git.pull(path, remote="origin", branch="main", username=USER, password=PASSWORD)
    assert PASSWORD not in sandbox.files.read(f"{path}/.git/config")
    sandbox.git.pull(clone)
    assert len(log(sandbox, clone)) == 2


def test_password_is_kept_when_asked(sandbox, folder, clone, private):
    path = f"{folder}/private"
    sandbox.git.clone(private, path, username=USER, password=PASSWORD, dangerously_store_credentials=True)
    assert PASSWORD in sandbox.git.remote_get(path, "origin")


def test_stored_credentials_open_everything_after(sandbox, folder, clone, private):
    home = {"HOME": folder}
    sandbox.git.dangerously_authenticate(USER, PASSWORD, host=f"127.0.0.1:{HTTP}", protocol="http", envs=home)
    sandbox.git.clone(private, f"{folder}/private", envs=home)
    assert sandbox.files.read(f"{folder}/private/hello") == "one\n"


def test_missing_password_is_an_error_of_its_own(sandbox, folder, clone, private):
    with pytest.raises(GitAuthException):
        sandbox.git.clone(private, f"{folder}/refused")
    with pytest.raises(GitAuthException):
        sandbox.git.clone(private, f"{folder}/refused", username=USER, password="wrong")
    with pytest.raises(InvalidArgumentException):
        sandbox.git.clone(private, f"{folder}/refused", password=PASSWORD)


def test_missing_upstream_is_an_error_of_its_own(sandbox, clone):
    sandbox.git.create_branch(clone, "topic")
    with pytest.raises(GitUpstreamException):
        sandbox.git.pull(clone)
    with pytest.raises(GitUpstreamException):
        sandbox.git.push(clone, set_upstream=False)


def test_repository_is_made(sandbox, folder):
    sandbox.git.init(f"{folder}/made", initial_branch="trunk")
    assert sandbox.git.status(f"{folder}/made").current_branch == "trunk"
