//! `[e2b_cloud]`: sandboxes of E2B.

use crate::kind::{HOUR, Kind, MINUTE};
use crate::setting::{Section, Setting};

pub(super) const SECTION: Section = Section {
    name: "e2b_cloud",
    doc: "For sandboxes of E2B, or of another server that speaks its API, where `e2b` is among the providers.",
    settings: &[
        Setting::new(
            "e2b_cloud.api_key",
            Kind::Text,
            "",
            "The key of the account there.",
        )
        .env(&["E2B_API_KEY"])
        .secret()
        .example("e2b_0123456789abcdef0123456789abcdef01234567"),
        Setting::new(
            "e2b_cloud.domain",
            Kind::Text,
            "e2b.app",
            "Its domain: the API is `api.` of it, sandboxes are `{port}-{id}.` of it.",
        )
        .env(&["E2B_DOMAIN"]),
        Setting::new("e2b_cloud.api_url", Kind::Text, "", "Where the API is.")
            .env(&["E2B_API_URL"])
            .otherwise("`https://api.` of the domain")
            .example("http://127.0.0.1:8101"),
        Setting::new(
            "e2b_cloud.sandbox_url",
            Kind::Text,
            "",
            "Where all its sandboxes are reached, told apart by headers.",
        )
        .env(&["E2B_SANDBOX_URL"])
        .otherwise("`https://{port}-{id}.` of the domain")
        .example("http://127.0.0.1:8101"),
        Setting::new(
            "e2b_cloud.template",
            Kind::Text,
            "base",
            "The template there of a sandbox whose maker names none.",
        ),
        Setting::new(
            "e2b_cloud.timeout",
            Kind::Duration(MINUTE, 24 * HOUR),
            "1h",
            "After how long a sandbox is paused there should this server be gone; while it is there it puts that off.",
        ),
        Setting::new(
            "e2b_cloud.trusted_ca",
            Kind::File,
            "",
            "Certificates to trust there besides the host's, in PEM.",
        )
        .example("/etc/sandyard/e2b-ca.pem"),
    ],
};
