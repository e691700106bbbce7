//! `[lifecycle]`, typed.

use std::time::Duration;

use crate::values::Values;

/// `[lifecycle]`: when sandboxes pause and go.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LifecycleSettings {
    /// Idle time after which a sandbox is paused, when its maker names none.
    pub default_timeout: Duration,
    /// The longest idle time that may be asked for.
    pub max_timeout: Duration,
    /// How long a paused or stopped sandbox is kept; `None` for ever.
    pub retention: Option<Duration>,
    /// Time of a foreground command that names none; `None` for no bound.
    pub command_timeout: Option<Duration>,
    /// The longest time that may be asked for a command.
    pub max_command_timeout: Duration,
    /// How long an orphaned instance stays before the server removes it.
    pub orphan_grace: Duration,
    /// How long events and deleted sandboxes can be looked up.
    pub history_retention: Duration,
}

impl LifecycleSettings {
    pub(super) fn build(values: &Values) -> Self {
        let max_timeout = values.duration("lifecycle.max_timeout");
        let max_command_timeout = values.duration("lifecycle.max_command_timeout");
        let command_timeout = values.bound("lifecycle.command_timeout");
        Self {
            default_timeout: values
                .duration("lifecycle.default_timeout")
                .min(max_timeout),
            max_timeout,
            retention: values.bound("lifecycle.retention"),
            command_timeout: command_timeout.map(|timeout| timeout.min(max_command_timeout)),
            max_command_timeout,
            orphan_grace: values.duration("lifecycle.orphan_grace"),
            history_retention: values.duration("lifecycle.history_retention"),
        }
    }
}
