"""Plain links to files, as a browser or curl opens them: signed, for one path, one user, one direction and a time."""

import time

import httpx
import pytest


@pytest.fixture
def get(server):
    return lambda url, **options: httpx.get(url, timeout=120, trust_env=False, verify=server.trust(), **options)


@pytest.fixture
def post(server):
    def post(url, content):
        files = {"file": ("any-name", content)}
        return httpx.post(url, files=files, timeout=120, trust_env=False, verify=server.trust())

    return post


@pytest.mark.parametrize("expires_in", [None, 120])
@pytest.mark.parametrize("user", [None, "root"])
def test_signed_links_upload_and_download_without_a_key(sandbox, user, expires_in, get, post):
    path = f"/tmp/link of {user} {expires_in}.txt"
    up = post(sandbox.upload_url(path, user=user, use_signature_expiration=expires_in), b"signed")
    assert up.status_code == 200, up.text
    down = get(sandbox.download_url(path, user=user, use_signature_expiration=expires_in))
    assert (down.status_code, down.content) == (200, b"signed")
    assert sandbox.files.get_info(path).owner == (user or "user")
    sandbox.files.remove(path, user="root")


def test_relative_paths_are_links_too(sandbox, get, post):
    assert post(sandbox.upload_url("linked.txt"), b"home").status_code == 200
    assert get(sandbox.download_url("linked.txt")).content == b"home"
    assert sandbox.files.read("/home/user/linked.txt") == "home"


def test_range_of_a_linked_file(sandbox, folder, get):
    sandbox.files.write(f"{folder}/r", "0123456789")
    reply = get(sandbox.download_url(f"{folder}/r"), headers={"Range": "bytes=2-4"})
    assert (reply.status_code, reply.content) == (206, b"234")


def test_altered_links_are_refused(sandbox, folder, get, post):
    sandbox.files.write(f"{folder}/one", "1")
    link = sandbox.download_url(f"{folder}/one", user="user", use_signature_expiration=120)
    assert get(link).status_code == 200
    altered = [
        link.replace("one&", "two&"),
        link.replace("username=user", "username=root"),
        link.replace("signature=v1_", "signature=v1_A"),
        link.replace("signature_expiration=", "signature_expiration=9"),
    ]
    assert all(url != link for url in altered)
    assert [get(url).status_code for url in altered] == [401] * len(altered)
    # One without any signature is nobody's.
    assert get(link.partition("&signature=")[0]).status_code in (401, 404)
    assert post(link, b"x").status_code == 401
    assert sandbox.files.read(f"{folder}/one") == "1"


def test_expired_link_is_refused_by_name(sandbox, folder, get):
    sandbox.files.write(f"{folder}/late", "x")
    reply = get(sandbox.download_url(f"{folder}/late", use_signature_expiration=-int(time.time() - 1)))
    assert (reply.status_code, reply.json()) == (401, {"code": 401, "message": "signature is already expired"})


def test_link_ends_with_its_sandbox(fresh_sandbox, get):
    fresh_sandbox.files.write("x", "y")
    link = fresh_sandbox.download_url("x")
    assert get(link).status_code == 200
    fresh_sandbox.kill()
    assert get(link).status_code in (401, 404, 502)


def test_missing_file_is_a_404_in_the_dialects_words(sandbox, folder, get):
    reply = get(sandbox.download_url(f"{folder}/nothing"))
    assert (reply.status_code, reply.json()["code"]) == (404, 404)
    assert "does not exist" in reply.json()["message"]
