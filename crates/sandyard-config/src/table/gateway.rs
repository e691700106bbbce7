//! `[gateway]`: egress of sandboxes.

use crate::kind::Kind;
use crate::setting::{Section, Setting};

pub(super) const SECTION: Section = Section {
    name: "gateway",
    doc: "Egress of sandboxes: what they may reach, through which proxy, and with which limits. A target is a host name \
          (`example.com`), all names below one (`*.example.com`), an IP address or a network (`10.0.0.0/8`), with an optional \
          `:port`.",
    settings: &[
        Setting::new("gateway.enabled", Kind::Switch)
            .default("true")
            .doc("Whether sandboxes have network access. With `false` they reach nothing, whatever their policy says."),
        Setting::new("gateway.reachable", Kind::Targets)
            .doc("Targets with closed addresses that sandboxes may reach: private, link-local, or of this host. A host name \
             opens every address that it resolves to. The policy of the sandbox must allow the target as well.")
            .when_unset("only the public internet")
            .example("10.0.8.0/24:5432,registry.internal"),
        Setting::new("gateway.denied", Kind::Targets)
            .doc("Targets that no sandbox may reach, whatever its policy says.")
            .when_unset("only closed addresses")
            .example("*:25,*.example.net"),
        Setting::new("gateway.allow_internet_access", Kind::Switch)
            .default("true")
            .doc("Whether a sandbox may reach targets that no entry of its policy names, if the create request sets no policy."),
        Setting::new("gateway.allow_out", Kind::Targets)
            .doc("Targets that a sandbox may reach, if the create request sets no policy.")
            .when_unset("no entries")
            .example("pypi.org,*.pythonhosted.org,registry.npmjs.org:443"),
        Setting::new("gateway.deny_out", Kind::Targets)
            .doc("Targets that a sandbox may not reach, if the create request sets no policy. `gateway.allow_out` takes precedence.")
            .when_unset("no entries")
            .example("*:25"),
        Setting::new("gateway.nameservers", Kind::NameServers)
            .doc("Name servers that resolve host names.")
            .when_unset("the name servers of this host (`/etc/resolv.conf`)")
            .example("192.0.2.53,[2001:db8::53]:5353"),
        Setting::new("gateway.proxy", Kind::Url(&["http", "socks5", "socks5h"]))
            .doc("Proxy for all egress traffic.")
            .when_unset("the environment variables `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`")
            .example("http://user:password@proxy.example.com:3128")
            .secret(),
        Setting::new("gateway.trusted_ca", Kind::File)
            .doc("Path of a PEM file with certificate authorities to trust in addition to the host's. The gateway needs them where it \
             adds secrets or headers to requests, because it then terminates TLS.")
            .when_unset("only the host's certificate authorities")
            .example("/etc/sandyard/tls/company-ca.pem"),
        Setting::new("gateway.max_connections", Kind::Integer(1, 1_000_000))
            .default("2048")
            .doc("Maximum number of open connections of one sandbox."),
        Setting::new("gateway.max_connections_total", Kind::Integer(1, 1_000_000))
            .default("16384")
            .doc("Maximum number of open connections of all sandboxes of this server."),
        Setting::new("gateway.connections_per_second", Kind::Integer(1, 1_000_000))
            .default("500")
            .doc("Maximum number of new connections per second of one sandbox, on average. Bursts may be ten times as large."),
        Setting::new("gateway.queries_per_second", Kind::Integer(1, 1_000_000))
            .default("200")
            .doc("Maximum number of DNS queries per second of one sandbox, on average. Bursts may be ten times as large."),
        Setting::new("gateway.bytes_per_second", Kind::Size(0, 1 << 50))
            .default("0")
            .doc("Maximum number of bytes per second that one sandbox may send and receive together. 0 means no limit."),
    ],
};
