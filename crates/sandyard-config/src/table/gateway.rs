//! `[gateway]`: what sandboxes reach.

use crate::kind::Kind;
use crate::setting::{Section, Setting};

pub(super) const SECTION: Section = Section {
    name: "gateway",
    doc: "The one door out of a sandbox: what sandboxes may reach, by which way, and how much at once. A target is a name \
          (`example.com`), all names below one (`*.example.com`), an address or a network (`10.0.0.0/8`), with or without \
          `:port`.",
    settings: &[
        Setting::new(
            "gateway.enabled",
            Kind::Switch,
            "true",
            "Whether sandboxes have a way out at all. Without it their network leads nowhere, whatever they ask for.",
        ),
        Setting::new(
            "gateway.reachable",
            Kind::Targets,
            "",
            "Closed targets that sandboxes may reach all the same: private and link-local addresses, this host's own. A name \
             opens whatever it resolves to. A sandbox's own policy still counts.",
        )
        .otherwise("the public internet alone")
        .example("10.0.8.0/24:5432,registry.internal"),
        Setting::new(
            "gateway.denied",
            Kind::Targets,
            "",
            "What no sandbox may reach, whatever its policy says.",
        )
        .otherwise("nothing more than what is closed anyway")
        .example("*:25,*.example.net"),
        Setting::new(
            "gateway.allow_internet_access",
            Kind::Switch,
            "true",
            "Whether a sandbox may reach what no entry of its policy names, when its maker does not say.",
        ),
        Setting::new(
            "gateway.allow_out",
            Kind::Targets,
            "",
            "What a sandbox whose maker says nothing about its network may reach in any case.",
        )
        .otherwise("no entries")
        .example("pypi.org,*.pythonhosted.org,registry.npmjs.org:443"),
        Setting::new(
            "gateway.deny_out",
            Kind::Targets,
            "",
            "What a sandbox whose maker says nothing about its network may not reach, unless `gateway.allow_out` names it.",
        )
        .otherwise("no entries")
        .example("*:25"),
        Setting::new(
            "gateway.nameservers",
            Kind::NameServers,
            "",
            "Whom to ask for the addresses of names.",
        )
        .otherwise("those of this host, as in `/etc/resolv.conf`")
        .example("192.0.2.53,[2001:db8::53]:5353"),
        Setting::new(
            "gateway.proxy",
            Kind::Url(&["http", "socks5", "socks5h"]),
            "",
            "A proxy through which everything goes out.",
        )
        .otherwise("as the environment says: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`")
        .example("http://user:password@proxy.example.com:3128")
        .secret(),
        Setting::new(
            "gateway.trusted_ca",
            Kind::File,
            "",
            "More certificate authorities to trust, in PEM, where the gateway puts secrets or headers into requests and \
             therefore speaks TLS itself.",
        )
        .otherwise("those of this host alone")
        .example("/etc/sandyard/tls/company-ca.pem"),
        Setting::new(
            "gateway.max_connections",
            Kind::Whole(1, 1_000_000),
            "2048",
            "Connections one sandbox may have open at once.",
        ),
        Setting::new(
            "gateway.max_connections_total",
            Kind::Whole(1, 1_000_000),
            "16384",
            "Connections all sandboxes of this server may have open at once.",
        ),
        Setting::new(
            "gateway.connections_per_second",
            Kind::Whole(1, 1_000_000),
            "500",
            "New connections of one sandbox in a second, on average; ten times as many may come at once.",
        ),
        Setting::new(
            "gateway.queries_per_second",
            Kind::Whole(1, 1_000_000),
            "200",
            "Look-ups of names by one sandbox in a second, on average; ten times as many may come at once.",
        ),
        Setting::new(
            "gateway.bytes_per_second",
            Kind::Size(0, 1 << 50),
            "0",
            "Bytes one sandbox may send and receive in a second, both together; 0 for no bound.",
        ),
    ],
};
