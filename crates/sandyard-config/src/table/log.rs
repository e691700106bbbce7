//! `[log]`: the server's own log.

use crate::kind::Kind;
use crate::setting::{Section, Setting};

pub(super) const SECTION: Section = Section {
    name: "log",
    doc: "The server's log on standard error.",
    settings: &[
        Setting::new("log.level", Kind::LogFilter)
            .default("info")
            .doc("Log level: `off`, `error`, `warn`, `info`, `debug` or `trace`, or levels by module such as `info,sandyard_service=debug`.")
            .env(&["SANDYARD_LOG", "RUST_LOG"])
            .flag("--log"),
        Setting::new("log.format", Kind::Choice(&["text", "json"]))
            .default("text")
            .doc("Format of the log: `text`, or `json` with one object per line.")
            .flag("--log-format"),
    ],
};
