"""The two ways to point the SDK at a server: by URLs over plain HTTP, and by a domain over TLS."""

import httpx


class Plain:
    """One URL for everything. What a host means is said in a header, so no name server is needed."""

    flags = ()

    def variables(self, server, key):
        urls = dict.fromkeys(("E2B_API_URL", "E2B_SANDBOX_URL", "E2B_VOLUME_API_URL"), server.e2b_url)
        return {"E2B_API_KEY": key, **urls}

    def connection(self, server, key):
        """Options for one client of the SDK, whatever the environment says."""
        return {"api_key": key, "api_url": server.e2b_url, "sandbox_url": server.e2b_url}

    def get(self, server, host, path, headers):
        """Opens a port of a sandbox by the host the SDK names."""
        return httpx.get(f"{server.e2b_url}{path}", headers={"Host": host, **headers}, timeout=120, trust_env=False)


class InDomain:
    """Names below a domain, all of this host, which a name server of the tests knows; see `resolver.py` of the harness."""

    def __init__(self, domain):
        self.flags = ("--tls-self-signed", "--domain", domain)
        self._domain = domain

    def domain(self, server):
        """With the port of the main listener: every listener knows the names."""
        return f"{self._domain}:{server.port}"

    def variables(self, server, key):
        return {"E2B_API_KEY": key, "E2B_DOMAIN": self.domain(server), "SSL_CERT_FILE": str(server.certificate)}

    def connection(self, server, key):
        return {"api_key": key, "domain": self.domain(server)}

    def get(self, server, host, path, headers):
        return httpx.get(f"https://{host}{path}", headers=headers, timeout=120, trust_env=False, verify=server.trust())


# Set by `--domain`, see conftest.py.
current = Plain()
