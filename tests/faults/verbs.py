"""What a user does to a sandbox. Each verb is one request, and knows what must hold after the fault, answered or not."""

import io
import secrets
import tarfile

from api import describe_reply
from waiting import wait_for

CONTENT = "written before the fault\n"
STORED = "/home/user/kept"


class Verb:
    """One request to a sandbox that has the file `KEPT`."""

    # Whether the sandbox is there after the verb.
    is_deleting = False

    def __init__(self, cell):
        self.cell, self.api = cell, cell.api
        self.unique = f"{type(self).__name__.lower()}-{secrets.token_hex(4)}"

    def prepare(self):
        self.sandbox = self.cell.make()
        self.api.write(self.sandbox, STORED, CONTENT)
        ran = self.api.run(self.sandbox, f"sync {STORED}")
        assert ran["exit_code"] == 0, ran

    def act(self, api):
        raise NotImplementedError

    def check(self, is_acknowledged):
        """Afterwards: an answer of 200 is kept, and what was not answered happened wholly or not at all."""

    def check_sandbox(self):
        assert self.cell.read(self.sandbox, STORED) == CONTENT

    def post(self, api, path, body=None, **options):
        return api.post(path, body, **options)


class Create(Verb):
    """Repeated with its idempotency key, so that a lost answer leaves no doubt."""

    def act(self, api):
        return self.post(api, "/sandboxes/create", self.cell.body(alias=self.unique), headers={"Idempotency-Key": self.unique})

    def check(self, is_acknowledged):
        created = self.cell.until_ok(lambda: self.act(self.api))
        self.cell.created.append(created["sandbox_id"])
        assert self.cell.run(created["sandbox_id"], "echo made") == "made\n"
        same = [one for one in self.api.all() if one.get("alias") == self.unique or one.get("name") == self.unique]
        assert len(same) <= 1, same


class Exec(Verb):
    def act(self, api):
        return self.post(api, "/sandboxes/run-command", {"sandbox_id": self.sandbox, "command": "echo ran"})

    def check(self, is_acknowledged):
        assert self.cell.run(self.sandbox, "echo ran again") == "ran again\n"


class Write(Verb):
    path = "/home/user/new"

    def act(self, api):
        # Larger than any buffer, smaller than what room there must be.
        self.content = secrets.token_hex(1 << 15)
        body = {"sandbox_id": self.sandbox, "path": self.path, "content": self.content}
        return self.post(api, "/sandboxes/write-file", body)

    def check(self, is_acknowledged):
        if is_acknowledged:
            assert self.cell.read(self.sandbox, self.path) == self.content
        self.cell.until_ok(lambda: self.act(self.api))
        assert self.cell.read(self.sandbox, self.path) == self.content


class Read(Verb):
    def act(self, api):
        reply = self.post(api, "/sandboxes/read-file", {"sandbox_id": self.sandbox, "path": STORED})
        if reply.status_code == 200:
            assert reply.json()["content"] == CONTENT, describe_reply(reply)
        return reply


class Pause(Verb):
    def act(self, api):
        return self.post(api, f"/sandboxes/{self.sandbox}/pause")

    def check(self, is_acknowledged):
        wait_for(lambda: self.api.status(self.sandbox) in ("running", "paused", "stopped"), f"{self.sandbox} is settled")


class Wake(Verb):
    def prepare(self):
        super().prepare()
        self.api.pause(self.sandbox)

    def act(self, api):
        return self.post(api, f"/sandboxes/{self.sandbox}/resume")


class Snapshot(Verb):
    def act(self, api):
        return self.post(api, f"/sandboxes/{self.sandbox}/snapshot", {"name": self.unique})

    def check(self, is_acknowledged):
        names = [one["name"] for one in self.api.ok("GET", "/templates")["templates"]]
        assert self.unique in names or not is_acknowledged, names
        if self.unique not in names:
            self.cell.until_ok(lambda: self.act(self.api), exists_is_fine=True)
        copy = self.cell.make(template=self.unique)
        assert self.cell.read(copy, STORED) == CONTENT
        self.cell.remove(copy)
        self.cell.until_ok(lambda: self.api.delete(f"/templates/{self.unique}"))


class Fork(Verb):
    def act(self, api):
        return self.post(api, f"/sandboxes/{self.sandbox}/fork", {})

    def check(self, is_acknowledged):
        copy = self.cell.until_ok(lambda: self.act(self.api))["sandbox_id"]
        self.cell.created.append(copy)
        assert self.cell.read(copy, STORED) == CONTENT


class Delete(Verb):
    is_deleting = True

    def act(self, api):
        return api.delete(f"/sandboxes/{self.sandbox}")

    def check(self, is_acknowledged):
        if not is_acknowledged:
            self.cell.until_ok(lambda: self.act(self.api), is_gone_fine=True)
        wait_for(lambda: self.api.get(f"/sandboxes/{self.sandbox}/status").json().get("status") in (None, "deleted"),
                 f"{self.sandbox} is deleted")

    def check_sandbox(self):
        pass


class Import(Verb):
    """A root with nothing but a file: enough for a template."""

    def act(self, api):
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            for folder in ("bin", "etc", "home", "usr"):
                entry = tarfile.TarInfo(folder)
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(entry)
            entry = tarfile.TarInfo("etc/word")
            entry.size = 1 << 20
            tar.addfile(entry, io.BytesIO(b"w" * entry.size))
        headers = {"Content-Type": "application/x-tar"}
        return api.request("PUT", f"/templates/{self.unique}", content=archive.getvalue(), headers=headers)

    def check(self, is_acknowledged):
        names = [one["name"] for one in self.api.ok("GET", "/templates")["templates"]]
        assert self.unique in names or not is_acknowledged, names
        if self.unique not in names:
            self.cell.until_ok(lambda: self.act(self.api), exists_is_fine=True)
        self.cell.until_ok(lambda: self.api.delete(f"/templates/{self.unique}"))


class Volume(Verb):
    """Made, mounted and written to after the fault."""

    def act(self, api):
        return self.post(api, "/volumes", {"name": self.unique})

    def check(self, is_acknowledged):
        names = [one["name"] for one in self.api.ok("GET", "/volumes")["volumes"]]
        assert self.unique in names or not is_acknowledged, names
        if self.unique not in names:
            self.cell.until_ok(lambda: self.act(self.api), exists_is_fine=True)
        user = self.cell.make(volumes={"/data": self.unique})
        assert self.cell.run(user, "echo in a volume >/data/file && cat /data/file") == "in a volume\n"
        self.cell.remove(user)
        self.cell.until_ok(lambda: self.api.delete(f"/volumes/{self.unique}"))


VERBS = {
    "create": Create,
    "exec": Exec,
    "write": Write,
    "read": Read,
    "pause": Pause,
    "wake": Wake,
    "snapshot": Snapshot,
    "fork": Fork,
    "delete": Delete,
    "import": Import,
    "volume": Volume,
}
