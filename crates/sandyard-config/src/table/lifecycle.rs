//! `[lifecycle]`: timeouts and retention.

use crate::kind::{DAY, HOUR, Kind};
use crate::setting::{Section, Setting};

pub(super) const SECTION: Section = Section {
    name: "lifecycle",
    doc: "Timeouts and retention. The server pauses a sandbox that is idle, and deletes it after the retention.",
    settings: &[
        Setting::new("lifecycle.default_timeout", Kind::Duration(1, 365 * DAY))
            .default("3600")
            .doc("Idle time after which a sandbox is paused, if the create request sets none, 1 second to 365 days.")
            .env(&["SANDBOX_DEFAULT_TIMEOUT", "DEFAULT_TIMEOUT"]),
        Setting::new("lifecycle.max_timeout", Kind::Duration(1, 365 * DAY))
            .default("86400")
            .doc("Maximum idle time that a request may set, up to 365 days.")
            .env(&["SANDBOX_MAX_TIMEOUT", "MAX_TIMEOUT"]),
        Setting::new("lifecycle.retention", Kind::Duration(0, 3650 * DAY))
            .default("7d")
            .doc("How long a paused or stopped sandbox is kept before it is deleted. 0 means no limit. The default of a week keeps work \
             over a holiday and still frees the disks of forgotten sandboxes."),
        Setting::new("lifecycle.command_timeout", Kind::Duration(0, 365 * DAY))
            .default("1h")
            .doc("Time limit of a foreground command, if the request sets none. 0 means no limit. Streamed and background commands \
             have no limit unless the request sets one."),
        Setting::new("lifecycle.max_command_timeout", Kind::Duration(1, 365 * DAY))
            .default("24h")
            .doc("Maximum time limit that a request may set for a command, up to 365 days."),
        Setting::new("lifecycle.orphan_grace", Kind::Duration(1, DAY))
            .default("300")
            .doc("How long the server waits before it removes an orphaned instance: one of a sandbox that was deleted, or created at another \
             provider. It never removes instances that the database does not know; `sandyard provider orphans` lists them.")
            .former_key("lifecycle.stranger_grace"),
        Setting::new("lifecycle.history_retention", Kind::Duration(HOUR, 3650 * DAY))
            .default("30d")
            .doc("How long events and deleted sandboxes stay in the database, 1 hour to 10 years."),
    ],
};
