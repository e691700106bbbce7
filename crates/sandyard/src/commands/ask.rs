//! Asking for what must not be seen: passwords and secrets. They never stand on the command line, where every user of the host
//! could see them.

use std::io::{BufRead, IsTerminal, Write};

use anyhow::{Context as _, bail};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use crate::output;

/// How often to ask on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Times {
    /// For what is pasted.
    Once,
    /// For what is typed, and must be known later.
    Twice,
}

/// Asks for something without showing it; or reads it as a line from standard input, where that is no terminal.
pub(super) fn hidden(what: &str, times: Times) -> anyhow::Result<String> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return read_line(what);
    }
    let before = tcgetattr(&stdin).context("preparing the terminal")?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&stdin, OptionalActions::Flush, &silent).context("preparing the terminal")?;
    let ask = |question: &str| {
        let _ = write!(std::io::stderr(), "{question}: ");
        let answer = read_line(what);
        output::note("");
        answer
    };
    let first = ask(what);
    let second = match times {
        Times::Once => None,
        Times::Twice => Some(ask("again")),
    };
    let _ = tcsetattr(&stdin, OptionalActions::Flush, &before);
    let first = first?;
    match second.transpose()? {
        Some(second) if second != first => bail!("the two {what}s are not the same"),
        _ => Ok(first),
    }
}

fn read_line(what: &str) -> anyhow::Result<String> {
    let mut line = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut line)
        .with_context(|| format!("reading the {what}"))?;
    let text = line.trim_end_matches(['\n', '\r']);
    if text.is_empty() {
        bail!("there is no {what} on standard input");
    }
    Ok(text.to_owned())
}
