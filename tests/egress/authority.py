"""A certificate authority that only the tests know."""

import ssl

import trustme


class Authority:
    """Signs for the sites of the tests. Its certificate is a file, for the gateway and for programs in sandboxes."""

    def __init__(self, folder):
        self._authority = trustme.CA(organization_name="Sandyard egress tests")
        self.path = folder / "authority.pem"
        self._authority.cert_pem.write_to_path(self.path)

    @property
    def pem(self):
        return self.path.read_text()

    def server_context(self, *names):
        """What a server needs to speak TLS under these names."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._authority.issue_cert(*names).configure_cert(context)
        context.set_alpn_protocols(["http/1.1"])
        return context
