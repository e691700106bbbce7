//! `[e2b_cloud]`: the provider `e2b`.

use crate::kind::{HOUR, Kind, MINUTE};
use crate::setting::{Section, Setting};

pub(super) const SECTION: Section = Section {
    name: "e2b_cloud",
    doc: "Sandboxes at E2B, or at another server with its API, if the provider `e2b` is enabled.",
    settings: &[
        Setting::new(
            "e2b_cloud.api_key",
            Kind::Text,
            "",
            "API key of the E2B account.",
        )
        .env(&["E2B_API_KEY"])
        .secret()
        .example("e2b_0123456789abcdef0123456789abcdef01234567"),
        Setting::new(
            "e2b_cloud.domain",
            Kind::Text,
            "e2b.app",
            "Domain of E2B. The API is at `api.<domain>`, sandboxes are at `{port}-{id}.<domain>`.",
        )
        .env(&["E2B_DOMAIN"]),
        Setting::new("e2b_cloud.api_url", Kind::Text, "", "URL of the API.")
            .env(&["E2B_API_URL"])
            .when_unset("`https://api.<domain>`")
            .example("http://127.0.0.1:8101"),
        Setting::new(
            "e2b_cloud.sandbox_url",
            Kind::Text,
            "",
            "URL at which all sandboxes are reached. Headers select the sandbox.",
        )
        .env(&["E2B_SANDBOX_URL"])
        .when_unset("`https://{port}-{id}.<domain>`")
        .example("http://127.0.0.1:8101"),
        Setting::new(
            "e2b_cloud.template",
            Kind::Text,
            "base",
            "E2B template of a sandbox, if the create request names none.",
        ),
        Setting::new(
            "e2b_cloud.timeout",
            Kind::Duration(MINUTE, 24 * HOUR),
            "1h",
            "Time after which E2B pauses a sandbox if this server is down, 1 minute to 24 hours. While the server runs, it extends the time.",
        ),
        Setting::new(
            "e2b_cloud.trusted_ca",
            Kind::File,
            "",
            "Path of a PEM file with certificate authorities to trust in addition to the host's.",
        )
        .example("/etc/sandyard/e2b-ca.pem"),
    ],
};
