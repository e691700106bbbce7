//! `[e2b]`: the API for E2B's clients.

use crate::kind::Kind;
use crate::setting::{Section, Setting};

pub(super) const SECTION: Section = Section {
    name: "e2b",
    doc: "The API for programs that use E2B's SDKs, on a listener of its own. `sandyard e2b env` prints the environment \
          variables that they need. A key is always required.",
    settings: &[
        Setting::new("e2b.enabled", Kind::Switch)
            .default("true")
            .doc("Whether E2B's API has a listener of its own. Without one it is available below `/e2b` and at `api.<server.domain>`."),
        Setting::new("e2b.host", Kind::Addresses)
            .doc("IP addresses of the listener for E2B's clients. An address other than loopback means that other machines can reach the server.")
            .when_unset("the addresses of `server.host`")
            .example("127.0.0.1"),
        Setting::new("e2b.port", Kind::Integer(0, 65_535))
            .doc("Port of the listener for E2B's clients. 0 selects a free port. If this is not set and the default port is in use, the server starts without this \
             listener and logs that.")
            .flag("--e2b-port")
            .when_unset("`server.port` + 1")
            .example("8101"),
        Setting::new("e2b.domain", Kind::Host)
            .doc("Domain, with an optional port, at which clients reach ports of sandboxes: `{port}-{id}.<domain>`. With TLS it is also the value of `E2B_DOMAIN`. \
             The name must be `server.domain` or `localhost`; the port is the one that clients connect to, such as that of a proxy.")
            .when_unset("`server.domain`, with the port of a listener unless it is the default port")
            .example("localhost:8101"),
        Setting::new("e2b.public_traffic", Kind::Switch)
            .default("true")
            .doc("Whether everybody who knows the random id of a sandbox can open its ports, as in E2B. Applies to sandboxes that E2B's clients create. \
             With `false` the sandbox's traffic token is required, unless the create request says otherwise."),
    ],
};
