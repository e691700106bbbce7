"""State of the stand-in, stored on disk if a folder is given."""

import json
import os


class Store:
    """Sandboxes and snapshots by id. Saved before anything is answered, so that a killed process forgets nothing."""

    def __init__(self, directory=None):
        self._file = directory / "state.json" if directory else None
        self.sandboxes, self.snapshots, self.seen = {}, {}, {}
        self.port = self.proxy_port = None
        if self._file and self._file.exists():
            stored = json.loads(self._file.read_text())
            self.sandboxes, self.snapshots = stored["sandboxes"], stored["snapshots"]
            self.seen, self.port, self.proxy_port = stored["seen"], stored["port"], stored["proxy_port"]

    def save(self):
        if not self._file:
            return
        ports = {"port": self.port, "proxy_port": self.proxy_port}
        stored = {"sandboxes": self.sandboxes, "snapshots": self.snapshots, "seen": self.seen, **ports}
        beside = self._file.with_suffix(".new")
        beside.write_text(json.dumps(stored))
        os.replace(beside, self._file)

    def remove(self):
        if self._file:
            self._file.unlink(missing_ok=True)
