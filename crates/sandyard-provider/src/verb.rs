//! The calls of a provider by name: for logs, for tests that fail one of them, and for the way to another node.

use std::fmt;
use std::str::FromStr;

/// One call of [`Provider`](crate::Provider).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[expect(missing_docs, reason = "named after the calls, which say it")]
pub enum Verb {
    CheckHealth,
    Create,
    Inspect,
    List,
    Pause,
    Resume,
    Stop,
    Start,
    Delete,
    Snapshot,
    Fork,
    Diff,
    Usage,
    Templates,
    ImportTemplate,
    RemoveTemplate,
    Agent,
    SetNetwork,
    KeepReady,
    UsageHistory,
    CreateVolume,
    DeleteVolume,
    OpenVolume,
}

impl Verb {
    /// All of them, in the trait's order.
    pub const ALL: [Self; 23] = [
        Self::CheckHealth,
        Self::Create,
        Self::Inspect,
        Self::List,
        Self::Pause,
        Self::Resume,
        Self::Stop,
        Self::Start,
        Self::Delete,
        Self::Snapshot,
        Self::Fork,
        Self::Diff,
        Self::Usage,
        Self::Templates,
        Self::ImportTemplate,
        Self::RemoveTemplate,
        Self::Agent,
        Self::SetNetwork,
        Self::KeepReady,
        Self::UsageHistory,
        Self::CreateVolume,
        Self::DeleteVolume,
        Self::OpenVolume,
    ];

    /// The call's own name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CheckHealth => "check_health",
            Self::Create => "create",
            Self::Inspect => "inspect",
            Self::List => "list",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Stop => "stop",
            Self::Start => "start",
            Self::Delete => "delete",
            Self::Snapshot => "snapshot",
            Self::Fork => "fork",
            Self::Diff => "diff",
            Self::Usage => "usage",
            Self::Templates => "templates",
            Self::ImportTemplate => "import_template",
            Self::RemoveTemplate => "remove_template",
            Self::Agent => "agent",
            Self::SetNetwork => "set_network",
            Self::KeepReady => "keep_ready",
            Self::UsageHistory => "usage_history",
            Self::CreateVolume => "create_volume",
            Self::DeleteVolume => "delete_volume",
            Self::OpenVolume => "open_volume",
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Says that a text names no call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no call of a provider")]
pub struct VerbError(pub String);

impl FromStr for Verb {
    type Err = VerbError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|verb| verb.as_str() == text)
            .ok_or_else(|| VerbError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for verb in Verb::ALL {
            assert_eq!(verb.as_str().parse(), Ok(verb));
        }
    }
}
