"""Archives that try to leave the folder they are unpacked in: `tar` runs in the sandbox, so the host is never the one that unpacks."""

import io
import tarfile
from pathlib import Path


def archive(*members):
    """A tar archive of headers with a little content."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, kind, target, mode in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.mode = kind, target, mode
            content = b"mark" if kind == tarfile.REGTYPE else b""
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def test_hostile_archives_stay_in_the_sandbox(server, api, sandbox):
    file, link, hard, device = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE
    outside = Path("/var/tmp/sandyard-escaped")
    hostile = [
        archive(("../" * 12 + "var/tmp/sandyard-escaped", file, "", 0o644)),
        archive(("/var/tmp/sandyard-escaped", file, "", 0o644)),
        archive(("out", link, "/var/tmp", 0o777), ("out/sandyard-escaped", file, "", 0o644)),
        archive(("passwd", hard, "/etc/shadow", 0o644)),
        archive(("kmem", device, "", 0o666)),
        archive(("n" * 5000, file, "", 0o644)),
        archive(("setuid", file, "", 0o6755)),
        archive(*[(f"many/{number}", file, "", 0o644) for number in range(2000)])[:-200_000],
        b"\0" * 512 + b"\xff" * 5000,
    ]
    for body in hostile:
        reply = api.request("POST", f"/api/sandboxes/{sandbox}/copy-to", params={"path": "/tmp/in"}, content=body)
        assert reply.status_code < 500, reply.text
    assert not outside.exists()
    seen = api.run(sandbox, "stat -c '%U %a' /tmp/in/setuid; find /tmp/in -type c -o -user root")["stdout"].split("\n")
    # It is the sandbox's user who unpacks: no devices, nothing of root's.
    assert seen[0].startswith("user ") and seen[1:] == [""], seen
    assert api.run(sandbox, "echo fine")["stdout"] == "fine\n"
