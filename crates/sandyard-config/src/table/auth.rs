//! `[auth]`: who may come in.

use crate::kind::{DAY, HOUR, Kind, MINUTE};
use crate::setting::{Section, Setting};

pub(super) const SECTION: Section = Section {
    name: "auth",
    doc: "Who may come in. The first start makes an admin key and keeps it in the data directory (`admin.key`); on a terminal it is shown once.",
    settings: &[
        Setting::new(
            "auth.mode",
            Kind::Choice(&["auto", "required", "open"]),
            "auto",
            "`auto`: the native and the Docker-style dialect are open on loopback, as long as nothing says that others can \
             reach the server; everywhere else a token or key is required. `required`: always required. `open`: never \
             required by those two dialects; the server refuses to start with it where others can reach it.",
        )
        .flag("--auth"),
        Setting::new(
            "auth.jwt_secret",
            Kind::Key(32),
            "",
            "Signs login tokens. Changing it ends every login. Make one with `openssl rand -hex 32`.",
        )
        .env(&["JWT_SECRET", "TOKEN_SECRET_KEY"])
        .otherwise("made at the first start and kept in the database, shared by all servers on it")
        .example("put-the-output-of-openssl-rand-hex-32-here")
        .secret(),
        Setting::new(
            "auth.token_ttl",
            Kind::Duration(MINUTE, 365 * DAY),
            "24h",
            "How long a login token is good for.",
        ),
        Setting::new(
            "auth.refresh_ttl",
            Kind::Duration(MINUTE, 365 * DAY),
            "30d",
            "How long a login can be renewed without the password. Not shorter than `auth.token_ttl`.",
        ),
        Setting::new(
            "auth.lockout_failures",
            Kind::Whole(0, 1_000_000),
            "5",
            "Wrong passwords in a row after which a user name is locked; 0 for never.",
        ),
        Setting::new(
            "auth.lockout_period",
            Kind::Duration(1, 24 * HOUR),
            "300",
            "How long it stays locked.",
        ),
    ],
};
