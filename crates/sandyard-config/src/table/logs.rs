//! `[logs]`: how much of the output of commands is kept.

use crate::kind::Kind;
use crate::setting::{Section, Setting};

const SIZE: Kind = Kind::Size(1 << 20, 1 << 50);

pub(super) const SECTION: Section = Section {
    name: "logs",
    doc: "How much of what commands write is kept on disk, in `logs/` of the data directory. The oldest output goes first. The output of a deleted \
          sandbox is kept for `lifecycle.history_retention`.",
    settings: &[
        Setting::new(
            "logs.max_per_sandbox",
            SIZE,
            "64m",
            "The most output kept of one sandbox.",
        ),
        Setting::new(
            "logs.max_total",
            SIZE,
            "4g",
            "The most output kept of all sandboxes, checked every minute.",
        ),
    ],
};
