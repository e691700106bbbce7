//! `[log]`: what is written, and how.

use crate::kind::Kind;
use crate::setting::{Section, Setting};

pub(super) const SECTION: Section = Section {
    name: "log",
    doc: "What the server writes to standard error.",
    settings: &[
        Setting::new(
            "log.level",
            Kind::LogFilter,
            "info",
            "`off`, `error`, `warn`, `info`, `debug` or `trace`, or levels by module: `info,sandyard_service=debug`.",
        )
        .env(&["SANDYARD_LOG", "RUST_LOG"])
        .flag("--log"),
        Setting::new(
            "log.format",
            Kind::Choice(&["text", "json"]),
            "text",
            "`text` for people, `json` for programs: one object a line.",
        )
        .flag("--log-format"),
    ],
};
