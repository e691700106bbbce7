//! What callers are told of sessions and commands.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::session::Session;
use super::state::{Doing, Finished};
use crate::reply::Reply;

/// What Bash answers, for programs.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Ran {
    /// The session it ran in.
    pub(super) session_name: String,
    /// What it printed, as plain text.
    pub(super) output: String,
    /// Its exit code; null while it runs.
    pub(super) exit_code: Option<i32>,
    /// Whether it is still running.
    pub(super) is_running: bool,
    /// How long it took, or has been running.
    pub(super) duration_seconds: f64,
    /// The folder the shell is in.
    pub(super) cwd: String,
    /// Whether output was left out in the middle.
    pub(super) is_cut: bool,
    /// What else is to be known of it, such as how to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
}

/// A session, for programs.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Seen {
    /// Its name.
    pub(super) session_name: String,
    /// `idle`, `busy` or `ended`.
    pub(super) state: &'static str,
    /// The folder the shell is in.
    pub(super) cwd: String,
    /// The command that runs, in few words.
    pub(super) command: Option<String>,
    /// For how long.
    pub(super) running_seconds: Option<f64>,
    /// The exit code of the last command, or of the shell itself when it has ended.
    pub(super) last_exit_code: Option<i32>,
    /// Its latest output, as plain text; only BashView tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) output: Option<String>,
}

/// Sessions, for programs.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SeenAll {
    /// Each of them.
    pub(super) sessions: Vec<Seen>,
}

/// Says how a command ended. `first` comes before everything else.
pub(super) fn finished(session: &Session, finished: &Finished, first: &str) -> Reply {
    let last = format!(
        "[exit code {}, {}, in {}]",
        finished.exit_code,
        seconds(finished.took),
        finished.cwd.display()
    );
    let end = if finished.is_end {
        format!(
            "[the shell of session {} ended with it; the next Bash in that session starts a new one]",
            session.name
        )
    } else {
        String::new()
    };
    let output = shown(&finished.output.text);
    Reply::text(joined(&[first, output, &last, &end])).with_structured(Ran {
        session_name: session.name.clone(),
        output: finished.output.text.clone(),
        exit_code: Some(finished.exit_code),
        is_running: false,
        duration_seconds: rounded(finished.took),
        cwd: finished.cwd.display().to_string(),
        is_cut: finished.output.is_cut,
        note: note(&[first, &end]),
    })
}

/// Says how far a command is; `why` tells why no more is known.
pub(super) fn running(session: &Session, first: &str, why: &str) -> Reply {
    let cwd = session.cwd();
    let state = session.state();
    let (running, took) = match (&state.doing, &state.last) {
        (Doing::Command(running), _) => (true, running.since.elapsed()),
        (_, Some(last)) => {
            let last = last.clone();
            drop(state);
            return finished(session, &last, first);
        }
        _ => (false, Duration::ZERO),
    };
    let output = state.screen.shown();
    let cwd = cwd
        .unwrap_or_else(|| state.cwd.clone())
        .display()
        .to_string();
    let last = format!(
        "[{why} It has been running for {}. BashView shows its output, BashWriteToProcess types into it, BashStop stops it. \
         Session {} is busy until then]",
        seconds(took),
        session.name
    );
    let note = note(&[first, &last]);
    Reply::text(joined(&[first, shown(&output.text), &last])).with_structured(Ran {
        session_name: session.name.clone(),
        output: output.text,
        exit_code: None,
        is_running: running,
        duration_seconds: rounded(took),
        cwd,
        is_cut: output.is_cut,
        note,
    })
}

/// A session in one line, and for programs.
pub(super) fn session(session: &Session) -> (String, Seen) {
    let cwd = session.cwd();
    let state = session.state();
    let cwd = cwd
        .unwrap_or_else(|| state.cwd.clone())
        .display()
        .to_string();
    // The first command is ours.
    let last = state.last.as_ref().filter(|last| last.number > 1);
    let mut seen = Seen {
        session_name: session.name.clone(),
        state: "idle",
        cwd: cwd.clone(),
        command: None,
        running_seconds: None,
        last_exit_code: last.map(|last| last.exit_code),
        output: None,
    };
    let line = match &state.doing {
        Doing::Nothing => match last {
            Some(last) => format!("idle, last exit code {}", last.exit_code),
            None => "idle, nothing has run yet".to_owned(),
        },
        Doing::Command(running) if running.number == 1 => {
            seen.state = "busy";
            "busy, the shell is starting".to_owned()
        }
        Doing::Command(running) => {
            seen.state = "busy";
            seen.command = Some(short(&running.command));
            seen.running_seconds = Some(rounded(running.since.elapsed()));
            let about = running
                .description
                .as_ref()
                .map_or_else(String::new, |words| format!(" ({})", short(words)));
            let time = seconds(running.since.elapsed());
            format!("busy for {time} with `{}`{about}", short(&running.command))
        }
        Doing::Ended(code) => {
            seen.state = "ended";
            seen.last_exit_code = Some(*code);
            format!("ended with exit code {code}; Bash starts it again")
        }
    };
    (format!("{}: {line}; in {cwd}", session.name), seen)
}

/// An output for people.
pub(super) fn shown(output: &str) -> &str {
    if output.is_empty() {
        "[no output]"
    } else {
        output
    }
}

/// The parts that have something in them, each on lines of its own.
fn joined(parts: &[&str]) -> String {
    let parts = parts.iter().copied().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("\n")
}

fn note(parts: &[&str]) -> Option<String> {
    Some(joined(parts)).filter(|note| !note.is_empty())
}

/// A command in few words.
pub(super) fn short(command: &str) -> String {
    let line = command.trim().lines().next().unwrap_or_default();
    let end = line.floor_char_boundary(120);
    let is_all = end == command.trim().len();
    format!("{}{}", &line[..end], if is_all { "" } else { " …" })
}

/// Time in words.
pub(super) fn seconds(time: Duration) -> String {
    if time < Duration::from_secs(10) {
        format!("{:.2} s", time.as_secs_f64())
    } else {
        format!("{} s", time.as_secs())
    }
}

/// Seconds to the millisecond.
pub(super) fn rounded(time: Duration) -> f64 {
    (time.as_secs_f64() * 1_000.0).round() / 1_000.0
}
