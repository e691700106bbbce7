"""A TLS server may ask for a second hello, and OpenSSL's takes the server name from that one."""

import socket
import subprocess
from pathlib import Path

import pytest

from waiting import wait_for

_SOURCE = Path(__file__).parent / "programs" / "hello_retry.c"


@pytest.fixture
def retrying(world, tmp_path):
    """A server at good.test that has a certificate for evil.test as well, and wants another key share than it is offered."""
    for name in ("good", "evil"):
        created = ["-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}.test", "-days", "2"]
        files = ["-keyout", tmp_path / f"{name}.key", "-out", tmp_path / f"{name}.pem"]
        subprocess.run(["openssl", "req", "-x509", *created, *files], check=True, capture_output=True)
    location = (world.good.address, world.closed_port)
    files = ["-cert", "good.pem", "-key", "good.key", "-cert2", "evil.pem", "-key2", "evil.key"]
    options = ["-accept", "{}:{}".format(*location), "-servername", "evil.test", "-groups", "X25519", "-www", "-quiet"]
    server = subprocess.Popen(["openssl", "s_server", *options, *files], cwd=tmp_path, stdin=subprocess.DEVNULL)
    try:
        wait_for(lambda: _listens(location), "the server listens")
        yield world.closed_port
    finally:
        server.kill()
        server.wait()


def test_a_second_hello_for_another_name_is_refused(shut, retrying, tmp_path):
    program = tmp_path / "hello_retry"
    subprocess.run(["gcc", "-O1", "-Wall", "-o", program, _SOURCE, "-lssl", "-lcrypto"], check=True)
    upload = {"data": {"sandbox_id": shut.id, "file_path": "/tmp/hello_retry"}, "files": {"file": program.read_bytes()}}
    reply = shut.api.post("/sandboxes/upload-file", **upload)
    assert reply.status_code == 200, reply.text
    shut.run("sudo chmod 755 /tmp/hello_retry")

    def exchange(first, second):
        return shut.run(["/tmp/hello_retry", "good.test", str(retrying), first, second])["stdout"].strip()

    # The server does ask twice, and an honest program does not notice the gateway.
    assert exchange("good.test", "good.test").endswith("CN=good.test after 2")
    assert exchange("evil.test", "evil.test") == "refused"
    assert exchange("good.test", "evil.test") == "refused"
    shut.denied("name_mismatch", "evil.test", name="good.test", port=retrying)


def _listens(location):
    try:
        socket.create_connection(location, 5).close()
    except OSError:
        return False
    return True
