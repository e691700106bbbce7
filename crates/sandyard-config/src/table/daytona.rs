//! `[daytona]`: the provider `daytona`.

use crate::kind::{DAY, Kind, MINUTE};
use crate::setting::{Section, Setting};

pub(super) const SECTION: Section = Section {
    name: "daytona",
    doc: "Sandboxes at Daytona, if the provider `daytona` is enabled.",
    settings: &[
        Setting::new(
            "daytona.api_key",
            Kind::Text,
            "",
            "API key of the Daytona account.",
        )
        .env(&["DAYTONA_API_KEY"])
        .secret()
        .example("dtn_0123456789abcdef"),
        Setting::new(
            "daytona.server_url",
            Kind::Text,
            "https://app.daytona.io/api",
            "URL of the API.",
        )
        .env(&["DAYTONA_SERVER_URL", "DAYTONA_API_URL"]),
        Setting::new("daytona.target", Kind::Text, "", "Region of sandboxes.")
            .env(&["DAYTONA_TARGET"])
            .when_unset("the account's default region")
            .example("eu"),
        Setting::new(
            "daytona.snapshot",
            Kind::Text,
            "",
            "Daytona snapshot of a sandbox, if the create request names no template.",
        )
        .when_unset("Daytona's default snapshot")
        .example("python-tools"),
        Setting::new(
            "daytona.auto_stop",
            Kind::Duration(MINUTE, 30 * DAY),
            "1h",
            "Idle time after which Daytona pauses a sandbox, or stops it if it cannot be paused, if this server is down, 1 minute \
             to 30 days. Rounded up to minutes.",
        ),
        Setting::new(
            "daytona.auto_archive",
            Kind::Duration(MINUTE, 30 * DAY),
            "7d",
            "Time after which Daytona archives a stopped sandbox, 1 minute to 30 days. An archived sandbox costs less and takes longer \
             to start. Rounded up to minutes.",
        ),
        Setting::new(
            "daytona.trusted_ca",
            Kind::File,
            "",
            "Path of a PEM file with certificate authorities to trust in addition to the host's.",
        )
        .example("/etc/sandyard/daytona-ca.pem"),
    ],
};
