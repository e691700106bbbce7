//! `[logs]`: the size of command logs.

use crate::kind::Kind;
use crate::setting::{Section, Setting};

const SIZE: Kind = Kind::Size(1 << 20, 1 << 50);

pub(super) const SECTION: Section = Section {
    name: "logs",
    doc: "Logs of the output of commands, in `logs/` in the data directory. The server deletes the oldest output first. It keeps the output of a deleted \
          sandbox for `lifecycle.history_retention`.",
    settings: &[
        Setting::new("logs.max_per_sandbox", SIZE)
            .default("64m")
            .doc("Maximum size of the log of one sandbox."),
        Setting::new("logs.max_total", SIZE)
            .default("4g")
            .doc("Maximum size of all logs, enforced every minute."),
    ],
};
