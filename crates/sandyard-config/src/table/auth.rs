//! `[auth]`: credentials.

use crate::kind::{DAY, HOUR, Kind, MINUTE};
use crate::setting::{Section, Setting};

pub(super) const SECTION: Section = Section {
    name: "auth",
    doc: "Credentials and logins. At the first start the server creates an admin key and stores it in the data directory (`admin.key`). On a terminal it prints the key once.",
    settings: &[
        Setting::new("auth.mode", Kind::Choice(&["auto", "required", "open"]))
            .default("auto")
            .doc("When a token or key is required. `required`: always. `auto`: always, except for the native and the Docker-style \
             dialect on loopback, if no setting implies that other machines can reach the server. `open`: never for these two \
             dialects; the server refuses to start with `open` if other machines can reach it.")
            .flag("--auth"),
        Setting::new("auth.jwt_secret", Kind::Key(32))
            .doc("Secret that signs login tokens, at least 32 bytes. A change ends all logins. Create one with `openssl rand -hex 32`.")
            .env(&["JWT_SECRET", "TOKEN_SECRET_KEY"])
            .when_unset("created at the first start and stored in the database, shared by all servers")
            .example("put-the-output-of-openssl-rand-hex-32-here")
            .secret(),
        Setting::new("auth.token_ttl", Kind::Duration(MINUTE, 365 * DAY))
            .default("24h")
            .doc("How long a login token is valid, 1 minute to 365 days."),
        Setting::new("auth.refresh_ttl", Kind::Duration(MINUTE, 365 * DAY))
            .default("30d")
            .doc("How long a login can be renewed without the password, up to 365 days. Must not be shorter than `auth.token_ttl`."),
        Setting::new("auth.lockout_failures", Kind::Integer(0, 1_000_000))
            .default("5")
            .doc("Number of wrong passwords in a row after which a user name is locked. 0 means never."),
        Setting::new("auth.lockout_period", Kind::Duration(1, 24 * HOUR))
            .default("300")
            .doc("How long a user name stays locked, 1 second to 24 hours."),
    ],
};
