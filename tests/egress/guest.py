"""A sandbox as the tests of this suite use it: programs and probes inside, its policy, and what the gateway wrote down."""

import json
from pathlib import Path

from waiting import wait_for

_PROBES = Path(__file__).with_name("probes.py")
# Where the certificate of the tests' own authority is put, for programs that are to trust it.
AUTHORITY = "/tmp/authority.pem"
_PAGE = 1000
# Programs wait longer for the answer to a look-up than their usual five seconds, and ask again more often: gateway and name
# server share two cores with much else.
PATIENT = {"RES_OPTIONS": "timeout:30 attempts:5"}


class Guest:
    """One sandbox of one caller."""

    def __init__(self, api, world=None, **body):
        self.api = api
        self.id = api.create(**body)
        try:
            api.write(self.id, "/tmp/probes.py", _PROBES.read_text())
            if world:
                api.write(self.id, AUTHORITY, world.authority.pem)
        except BaseException:
            self.remove()
            raise

    def remove(self):
        self.api.remove(self.id)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()

    # --- programs

    def run(self, command, env=None, **body):
        return self.api.run(self.id, command, env={**PATIENT, **(env or {})}, **body)

    def output(self, command, **body):
        """What a command wrote, which must end well."""
        ran = self.run(command, **body)
        assert ran["exit_code"] == 0, f"{command!r} ended with {ran['exit_code']}: {ran['output'][-2000:]}"
        return ran["stdout"]

    def curl(self, url, *options, **body):
        """`curl` with the tests' authority trusted; returns the answer of the API."""
        arguments = ["curl", "--silent", "--show-error", "--max-time", "120", "--cacert", AUTHORITY, *options, url]
        return self.run(arguments, **body)

    def probe(self, name, *args, user="root", env=None, **kwargs):
        """One way out, tried as root inside; see probes.py."""
        arguments = ["python3", "/tmp/probes.py", name, json.dumps({"args": args, "kwargs": kwargs})]
        ran = self.run(arguments, user=user, env=env, timeout=240)
        assert ran["exit_code"] == 0, f"the probe {name} broke: {ran['output'][-2000:]}"
        return json.loads(ran["stdout"])

    def probe_in_background(self, name, *args):
        """The same for a probe that may break the connection of its own command."""
        arguments = f"rm -f /tmp/told; python3 /tmp/probes.py {name} '{json.dumps({'args': args})}' > /tmp/telling 2>&1"
        self.run(f"{arguments}; mv /tmp/telling /tmp/told", user="root", background=True)

    def report_in_background(self):
        """What the last of them told; none while it has not. The next attempt repairs a connection it broke."""
        reply = self.api.post("/sandboxes/read-file", {"sandbox_id": self.id, "path": "/tmp/told"})
        return json.loads(reply.json()["content"]) if reply.status_code == 200 else None

    # --- egress

    def policy(self):
        return self.api.ok("GET", f"/sandboxes/{self.id}/network")

    def set_policy(self, **policy):
        return self.api.ok("PUT", f"/sandboxes/{self.id}/network", policy)

    def allow(self, *targets):
        return self.api.ok("POST", f"/sandboxes/{self.id}/network/allow", {"targets": targets})

    def deny(self, *targets):
        return self.api.ok("POST", f"/sandboxes/{self.id}/network/deny", {"targets": targets})

    def flows(self, **filters):
        """What the gateway wrote down, oldest first, page by page."""
        found, after = [], 0
        while True:
            parameters = {"limit": _PAGE, "after": after, **filters}
            page = self.api.ok("GET", f"/sandboxes/{self.id}/flows", params=parameters)["flows"]
            found += page
            if len(page) < _PAGE:
                return found
            after = page[-1]["seq"]

    def flow(self, reason="", **expected):
        """Waits for the record of an attempt, with this in its reason; returns the newest match."""

        def find():
            seen[:] = self.flows(**({"verdict": expected["verdict"]} if "verdict" in expected else {}))
            alike = [flow for flow in seen if all(flow[name] == value for name, value in expected.items())]
            return [flow for flow in alike if reason in (flow["reason"] or "")]

        seen = []
        return wait_for(find, lambda: f"a flow with {expected} and {reason!r} among {json.dumps(seen, indent=1)[-3000:]}")[-1]

    def denied(self, code, reason="", **expected):
        """Waits for the record of a denied attempt, which must say why in one line."""
        flow = self.flow(reason, verdict="denied", code=code, **expected)
        assert flow["reason"] and "\n" not in flow["reason"], flow
        return flow
