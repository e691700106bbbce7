//! What a line of shell is made of.

use super::lex::{Direction, Word};

/// Commands one after another.
pub(super) type List = Vec<Vec<(Joint, Pipeline)>>;

/// When a command runs, by how the one before ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joint {
    Always,
    And,
    Or,
}

/// Commands of which each reads what the one before writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pipeline {
    pub(super) is_negated: bool,
    pub(super) commands: Vec<Command>,
}

/// Where something goes or comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Redirect {
    File(Option<u8>, Direction, Word),
    Join(u8, u8),
}

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Simple {
        words: Vec<Word>,
        redirects: Vec<Redirect>,
    },
    While {
        is_until: bool,
        condition: List,
        body: List,
    },
    If {
        branches: Vec<(List, List)>,
        otherwise: List,
    },
    For {
        name: String,
        words: Vec<Word>,
        body: List,
    },
}
