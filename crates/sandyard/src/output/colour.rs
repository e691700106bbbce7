//! Colours of terminal output.

use std::io::IsTerminal;
use std::sync::OnceLock;

/// A colour with a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    /// Healthy or allowed.
    Good,
    /// Not running, or worth attention.
    Quiet,
    /// Failed or denied.
    Bad,
    /// A heading.
    Bold,
}

impl Colour {
    /// The colour of a sandbox's status or a flow's verdict.
    pub(crate) fn of_status(status: &str) -> Option<Self> {
        match status {
            "running" | "healthy" | "allowed" => Some(Self::Good),
            "error" | "unhealthy" | "unreachable" | "denied" => Some(Self::Bad),
            "degraded" | "paused" | "stopped" | "initializing" | "creating" | "failed" => {
                Some(Self::Quiet)
            }
            _ => None,
        }
    }

    /// Wraps a text in the escape sequences of this colour.
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

/// Returns whether standard output gets colours: it is a terminal, `NO_COLOR` is unset and `TERM` is not `dumb`.
pub(crate) fn use_colour() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| is_wanted() && std::io::stdout().is_terminal())
}

/// A label of a message on standard error, in its colour if that is a terminal.
pub(super) fn label(text: &str, colour: Colour) -> String {
    match is_wanted() && std::io::stderr().is_terminal() {
        true => colour.wrap(text),
        false => text.to_owned(),
    }
}

fn is_wanted() -> bool {
    let is_refused = std::env::var_os("NO_COLOR").is_some_and(|text| !text.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    !is_refused && !is_dumb
}
