//! `[daytona]`: sandboxes of Daytona.

use crate::kind::{DAY, Kind, MINUTE};
use crate::setting::{Section, Setting};

pub(super) const SECTION: Section = Section {
    name: "daytona",
    doc: "For sandboxes of Daytona, where `daytona` is among the providers.",
    settings: &[
        Setting::new(
            "daytona.api_key",
            Kind::Text,
            "",
            "The key of the account there.",
        )
        .env(&["DAYTONA_API_KEY"])
        .secret()
        .example("dtn_0123456789abcdef"),
        Setting::new(
            "daytona.server_url",
            Kind::Text,
            "https://app.daytona.io/api",
            "Where its API is.",
        )
        .env(&["DAYTONA_SERVER_URL", "DAYTONA_API_URL"]),
        Setting::new("daytona.target", Kind::Text, "", "The region of sandboxes.")
            .env(&["DAYTONA_TARGET"])
            .otherwise("the account's default")
            .example("eu"),
        Setting::new(
            "daytona.snapshot",
            Kind::Text,
            "",
            "The snapshot there of a sandbox whose maker names no template.",
        )
        .otherwise("Daytona's default")
        .example("python-tools"),
        Setting::new(
            "daytona.auto_stop",
            Kind::Duration(MINUTE, 30 * DAY),
            "1h",
            "After how long without use a sandbox is paused there, or stopped where that is not possible, should this server be \
             gone. Rounded up to minutes.",
        ),
        Setting::new(
            "daytona.auto_archive",
            Kind::Duration(MINUTE, 30 * DAY),
            "7d",
            "After how long a stopped sandbox is archived there: its files are kept where they cost less, and it takes longer to \
             start. Rounded up to minutes.",
        ),
        Setting::new(
            "daytona.trusted_ca",
            Kind::File,
            "",
            "Certificates to trust there besides the host's, in PEM.",
        )
        .example("/etc/sandyard/daytona-ca.pem"),
    ],
};
