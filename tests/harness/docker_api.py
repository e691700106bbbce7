"""Docker's own API, for tests that look behind the server: what is really there, whatever the server says."""

import io
import ssl
import tarfile
import time
from pathlib import Path

import httpx

import docker_labels

# What Docker itself makes and nobody removes.
_OWN_NETWORKS = {"bridge", "host", "none"}
_TIMEOUT = 300.0


class DockerApi:
    """One daemon, by its socket or by an address with a folder of client certificates."""

    def __init__(self, socket=None, url=None, certificates=None):
        if socket:
            transport = httpx.HTTPTransport(uds=str(socket))
            self._http = httpx.Client(transport=transport, base_url="http://docker", timeout=_TIMEOUT)
        else:
            self._http = httpx.Client(base_url=url, verify=client_context(certificates), timeout=_TIMEOUT, trust_env=False)

    def close(self):
        self._http.close()

    def call(self, method, path, **options):
        """The answer of a call that must succeed, read from JSON where there is any."""
        reply = self._http.request(method, path, **options)
        assert reply.status_code < 400, f"Docker: {method} {path} answered {reply.status_code}: {reply.text[:500]}"
        return reply.json() if reply.headers.get("content-type", "").startswith("application/json") and reply.content else None

    def answers(self, timeout=10.0):
        """Whether anybody is there."""
        try:
            return self._http.get("/_ping", timeout=timeout).status_code == 200
        except (httpx.HTTPError, ssl.SSLError):
            return False

    # --- what is there

    def containers(self, **filters):
        """All of them, running or not."""
        return self.call("GET", "/containers/json", params={"all": "true", **filters})

    def container(self, name):
        """Everything Docker tells of a container: `docker inspect`."""
        return self.call("GET", f"/containers/{name}/json")

    def volumes(self):
        """All but those with the agent's program, which sandboxes share and which stay for the next one."""
        names = [volume["Name"] for volume in self.call("GET", "/volumes")["Volumes"] or []]
        return [name for name in names if not name.startswith(docker_labels.AGENT)]

    def networks(self):
        return [network["Name"] for network in self.call("GET", "/networks") if network["Name"] not in _OWN_NETWORKS]

    def images(self):
        return {image["Id"] for image in self.call("GET", "/images/json", params={"all": "true"})}

    def remains(self):
        """Everything a sandbox might leave behind, for a comparison of before and after; what holds the agent's program is nobody's."""
        names = (name.lstrip("/") for one in self.containers() for name in one["Names"])
        return {
            "containers": sorted(name for name in names if not name.startswith((docker_labels.AGENT, docker_labels.FILL))),
            "volumes": sorted(self.volumes()),
            "networks": sorted(self.networks()),
        }

    # --- changing it

    def import_image(self, tar, name):
        """Makes an image from a tarball of a root, as `docker import` does."""
        repository, _, tag = name.partition(":")
        parameters = {"fromSrc": "-", "repo": repository, "tag": tag or "latest"}
        with Path(tar).open("rb") as archive:
            response = self._http.post("/images/create", params=parameters, content=archive)
        assert response.status_code == 200 and "error" not in response.text, response.text[:500]

    def build_image(self, name, dockerfile):
        """Builds an image of a Dockerfile that needs no other file."""
        context = io.BytesIO()
        with tarfile.open(fileobj=context, mode="w") as archive:
            entry = tarfile.TarInfo("Dockerfile")
            entry.size = len(dockerfile.encode())
            archive.addfile(entry, io.BytesIO(dockerfile.encode()))
        parameters = {"t": name, "networkmode": "none", "version": "1"}
        headers = {"content-type": "application/x-tar"}
        response = self._http.post("/build", params=parameters, content=context.getvalue(), headers=headers)
        assert response.status_code == 200 and "errorDetail" not in response.text, response.text[-1000:]

    def save_image(self, name, file):
        """Writes an image to an open file, as `docker save` does."""
        with self._http.stream("GET", f"/images/{name}/get") as response:
            assert response.status_code == 200, response.read()
            for part in response.iter_bytes(1 << 20):
                file.write(part)

    def push_image(self, name, registry):
        """Sends an image to a registry."""
        pushed = f"{registry.address}/{name}"
        repository, _, tag = pushed.rpartition(":")
        self.call("POST", f"/images/{name}/tag", params={"repo": repository, "tag": tag})
        response = self._http.post(f"/images/{repository}/push", params={"tag": tag}, headers=registry.push_header())
        self.remove_image(pushed)
        assert response.status_code == 200 and "errorDetail" not in response.text, response.text[-1000:]
        return pushed

    def remove_image(self, name):
        self.call("DELETE", f"/images/{name}")

    def has_image(self, name):
        return self._http.get(f"/images/{name}/json").status_code == 200

    def start(self, name, **body):
        """Makes a container and starts it."""
        created = self.call("POST", "/containers/create", params={"name": name}, json=body)["Id"]
        self.call("POST", f"/containers/{created}/start")
        return created

    def logs(self, name):
        reply = self._http.get(f"/containers/{name}/logs", params={"stdout": "true", "stderr": "true", "tail": "40"})
        return reply.text[-3000:]

    def remove(self, name):
        """Removes a container with its volumes; one that is gone already is fine."""
        end = time.monotonic() + 120
        while True:
            reply = self._http.delete(f"/containers/{name}", params={"force": "true", "v": "true"})
            # Docker may still be busy with removing it for somebody else.
            if reply.status_code in (204, 404) or time.monotonic() > end:
                assert reply.status_code in (204, 404), reply.text
                return
            time.sleep(0.1)

    def clear(self):
        """Removes every container and volume."""
        for container in self.containers():
            self.remove(container["Id"])
        for volume in self.call("GET", "/volumes")["Volumes"] or []:
            self._http.delete(f"/volumes/{volume['Name']}", params={"force": "true"})


def client_context(folder):
    """TLS with the certificates of a folder as `DOCKER_CERT_PATH` names one; none: no certificate of the client's own."""
    if folder is None:
        return False
    folder = Path(folder)
    context = ssl.create_default_context(cafile=folder / "ca.pem")
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return context
