//! Colours, on terminals only and never against `NO_COLOR`.

use std::io::IsTerminal;
use std::sync::OnceLock;

/// A colour with a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    /// As it should be.
    Good,
    /// At rest, or worth a look.
    Quiet,
    /// Wrong.
    Bad,
    /// A heading.
    Bold,
}

impl Colour {
    /// The colour of a sandbox's status, or of what became of a flow.
    pub(crate) fn of_status(status: &str) -> Option<Self> {
        match status {
            "running" | "healthy" | "allowed" => Some(Self::Good),
            "error" | "unhealthy" | "denied" => Some(Self::Bad),
            "paused" | "stopped" | "initializing" | "creating" | "failed" => Some(Self::Quiet),
            _ => None,
        }
    }

    /// Wraps a text for a terminal.
    pub(super) fn wrap(self, text: &str) -> String {
        let code = match self {
            Self::Good => "32",
            Self::Quiet => "33",
            Self::Bad => "31",
            Self::Bold => "1",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// Says whether standard output is for eyes that want colours.
pub(crate) fn is_colourful() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|text| !text.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        std::io::stdout().is_terminal() && !refused && !is_dumb
    })
}
