//! Prompts for confirmations, and for passwords and secrets. These are not accepted on the command line, where every user of the host could see them.

use std::io::{BufRead, IsTerminal, Write};

use anyhow::{Context as _, bail};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use crate::output;

/// Whether the user types the value a second time on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Confirmation {
    /// Once, for values that people paste.
    None,
    /// Twice, for values that people type and must remember.
    Repeat,
}

/// Asks for a value without echoing it. Reads one line when standard input is not a terminal.
pub(super) fn hidden(name: &str, confirmation: Confirmation) -> anyhow::Result<String> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return read_line(name);
    }
    let before = tcgetattr(&stdin).context("turning off the terminal's echo")?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&stdin, OptionalActions::Flush, &silent)
        .context("turning off the terminal's echo")?;
    let ask = |label: &str| {
        let _ = write!(std::io::stderr(), "{label}: ");
        let answer = read_line(name);
        output::note("");
        answer
    };
    let first = ask(name);
    let second = match confirmation {
        Confirmation::None => None,
        Confirmation::Repeat => Some(ask(&format!("repeat {name}"))),
    };
    let _ = tcsetattr(&stdin, OptionalActions::Flush, &before);
    let first = first?;
    match second.transpose()? {
        Some(second) if second != first => bail!("the two {name}s differ"),
        _ => Ok(first),
    }
}

/// Asks a question on the terminal, unless standard input is none: then the answer is yes.
pub(super) fn confirm(question: &str) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Ok(true);
    }
    let _ = write!(std::io::stderr(), "{question} [y/N] ");
    let mut answer = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut answer)
        .context("reading the answer")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn read_line(name: &str) -> anyhow::Result<String> {
    let mut line = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut line)
        .with_context(|| format!("reading the {name}"))?;
    let text = line.trim_end_matches(['\n', '\r']);
    if text.is_empty() {
        bail!("no {name} on standard input");
    }
    Ok(text.to_owned())
}
