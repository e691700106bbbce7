//! `[e2b]`: what E2B's own clients are offered.

use crate::kind::Kind;
use crate::setting::{Section, Setting};

pub(super) const SECTION: Section = Section {
    name: "e2b",
    doc: "For programs written for E2B, which speak to their usual API at a listener of its own. `sandyard e2b env` prints \
          what they need in their environment. A key is always required there.",
    settings: &[
        Setting::new(
            "e2b.enabled",
            Kind::Switch,
            "true",
            "Whether E2B's API has a listener of its own. Without one it is still below `/e2b` and at `api.` of `server.domain`.",
        ),
        Setting::new(
            "e2b.host",
            Kind::Addresses,
            "",
            "Addresses of E2B's API. Any but loopback means that others can reach the server.",
        )
        .otherwise("those of `server.host`")
        .example("127.0.0.1"),
        Setting::new(
            "e2b.port",
            Kind::Whole(0, 65_535),
            "",
            "Port of E2B's API; 0 takes a free one. If nobody chose it and it is taken, the server starts without this \
             listener and says so.",
        )
        .flag("--e2b-port")
        .otherwise("the one after `server.port`")
        .example("8101"),
        Setting::new(
            "e2b.domain",
            Kind::Host,
            "",
            "What clients are told to put behind `{port}-{id}.` to reach a port of a sandbox, and, with TLS, what `E2B_DOMAIN` \
             must be. Its name is `server.domain` or `localhost`; the port is the one clients reach, such as that of a proxy.",
        )
        .otherwise("`server.domain`, with the port of a listener unless that is the usual one")
        .example("localhost:8101"),
        Setting::new(
            "e2b.public_traffic",
            Kind::Switch,
            "true",
            "Whether ports of sandboxes that E2B's clients make can be opened by whoever knows the sandbox's random id, as E2B \
             has it. With `false` they ask for the sandbox's traffic token, unless its maker says otherwise.",
        ),
    ],
};
