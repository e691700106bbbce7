//! `[lifecycle]`: when sandboxes pause and go.

use crate::kind::{DAY, HOUR, Kind};
use crate::setting::{Section, Setting};

pub(super) const SECTION: Section = Section {
    name: "lifecycle",
    doc: "How long things last. A running sandbox that nobody uses is paused, and deleted when nobody comes back.",
    settings: &[
        Setting::new(
            "lifecycle.default_timeout",
            Kind::Duration(1, 365 * DAY),
            "3600",
            "Idle time after which a sandbox is paused, when its maker names none.",
        )
        .env(&["SANDBOX_DEFAULT_TIMEOUT", "DEFAULT_TIMEOUT"]),
        Setting::new(
            "lifecycle.max_timeout",
            Kind::Duration(1, 365 * DAY),
            "86400",
            "The longest idle time a caller may ask for.",
        )
        .env(&["SANDBOX_MAX_TIMEOUT", "MAX_TIMEOUT"]),
        Setting::new(
            "lifecycle.retention",
            Kind::Duration(0, 3650 * DAY),
            "7d",
            "How long a paused or stopped sandbox is kept before it is deleted; 0 for ever. A week, so that work left on a \
             Friday is there after a holiday, and forgotten disks still go.",
        ),
        Setting::new(
            "lifecycle.command_timeout",
            Kind::Duration(0, 365 * DAY),
            "1h",
            "Time a foreground command gets when its caller names none; 0 for no bound. Streamed and background commands \
             have no bound unless they name one.",
        ),
        Setting::new(
            "lifecycle.max_command_timeout",
            Kind::Duration(1, 365 * DAY),
            "24h",
            "The longest time a caller may ask for a command.",
        ),
        Setting::new(
            "lifecycle.stranger_grace",
            Kind::Duration(1, DAY),
            "300",
            "How long what is left of a sandbox that was deleted, or made elsewhere in the end, is left alone before it is removed. What \
             the database knows nothing of is never removed; `sandyard provider unknown` lists it.",
        ),
        Setting::new(
            "lifecycle.history_retention",
            Kind::Duration(HOUR, 3650 * DAY),
            "30d",
            "How long events and deleted sandboxes can still be looked up.",
        ),
    ],
};
