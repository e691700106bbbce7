"""Certificates for a Docker daemon that asks its clients for one: an authority, the daemon's and a client's folder."""

from pathlib import Path

import trustme


class Certificates:
    """`client` is a folder for `DOCKER_CERT_PATH`; `other_user` one whose certificate is from another authority."""

    def __init__(self, folder):
        self.folder = Path(folder)
        authority, other = trustme.CA(), trustme.CA()
        self.daemon = self._write("daemon", authority, authority.issue_cert("127.0.0.1", "localhost"))
        self.client = self._write("client", authority, authority.issue_cert("client@docker.test"))
        self.other_user = self._write("stranger", authority, other.issue_cert("stranger@docker.test"))
        # Trusts another authority, so it rejects the daemon's certificate.
        self.distrustful = self._write("distrustful", other, authority.issue_cert("client@docker.test"))

    def _write(self, name, authority, certificate):
        folder = self.folder / name
        folder.mkdir(parents=True)
        authority.cert_pem.write_to_path(folder / "ca.pem")
        (folder / "cert.pem").write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
        certificate.private_key_pem.write_to_path(folder / "key.pem")
        (folder / "key.pem").chmod(0o600)
        return folder

    def daemon_options(self, folder=None):
        """Options of dockerd; `folder` is where it sees its certificates, if that is another place."""
        folder = Path(folder or self.daemon)
        files = [f"--tlscacert={folder / 'ca.pem'}", f"--tlscert={folder / 'cert.pem'}", f"--tlskey={folder / 'key.pem'}"]
        return ["--tlsverify", *files]
