"""Plain links to files: what a browser or curl does with `download_url` and `upload_url`."""

import urllib.error
import urllib.request

import httpx
import pytest
from e2b import InvalidArgumentException


def test_download_url_gives_the_file(sandbox, folder):
    sandbox.files.write(f"{folder}/a b+c.txt", "linked")
    with urllib.request.urlopen(sandbox.download_url(f"{folder}/a b+c.txt"), timeout=120) as reply:
        assert reply.read() == b"linked"


def test_upload_url_takes_a_form(sandbox, folder):
    url = sandbox.upload_url(f"{folder}/up.txt", user="user")
    reply = httpx.post(url, files={"file": ("any-name.txt", b"uploaded")}, timeout=120)
    assert reply.status_code == 200
    assert reply.json() == [{"name": "up.txt", "path": f"{folder}/up.txt", "type": "file"}]
    assert sandbox.files.read(f"{folder}/up.txt") == "uploaded"


def test_missing_file_is_a_404_with_a_message(sandbox, folder):
    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(sandbox.download_url(f"{folder}/nothing"), timeout=120)
    assert raised.value.code == 404
    assert b"does not exist" in raised.value.read()


def test_range_of_a_file(sandbox, folder):
    sandbox.files.write(f"{folder}/r", "0123456789")
    reply = httpx.get(sandbox.download_url(f"{folder}/r"), headers={"Range": "bytes=2-4"}, timeout=120)
    assert (reply.status_code, reply.content, reply.headers["content-range"]) == (206, b"234", "bytes 2-4/10")


def test_debug_mode_has_no_token_to_sign_with(sandbox, folder):
    with pytest.raises(InvalidArgumentException):
        sandbox.download_url(f"{folder}/x", use_signature_expiration=60)
