"""Users of a server and their keys."""

import mode


class Tenant:
    """An ordinary user with a key."""

    def __init__(self, server, name):
        self._server = server
        with_admin(server, "POST", "/users", {"name": name, "password": f"Right-{name}-1!", "role": "user"})
        created = with_admin(server, "POST", "/keys", {"name": "tests", "user": name})
        self.key, self._key_id = created["key"], created["id"]

    def revoke(self):
        """Takes the key back."""
        with_admin(self._server, "DELETE", f"/keys/{self._key_id}")

    @property
    def connection(self):
        """Options that point one client of the SDK at the server as this user, whatever the environment says."""
        return mode.current.connection(self._server, self.key)


def with_admin(server, *call):
    admin = server.admin()
    try:
        return admin.ok(*call)
    finally:
        admin.close()
