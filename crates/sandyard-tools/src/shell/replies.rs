//! Replies about sessions and commands.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::session::Session;
use super::state::{Activity, Finished};
use crate::reply::Reply;

/// The structured result of Bash.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CommandResult {
    /// Name of the session.
    pub(super) session_name: String,
    /// Output of the command as plain text.
    pub(super) output: String,
    /// Exit code; null while the command runs.
    pub(super) exit_code: Option<i32>,
    /// Whether the command is still running.
    pub(super) is_running: bool,
    /// Duration of the command so far, in seconds.
    pub(super) duration_seconds: f64,
    /// Working directory of the shell.
    pub(super) cwd: String,
    /// Whether a part in the middle of the output was left out.
    pub(super) is_cut: bool,
    /// Additional information, such as what to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
}

/// A session in structured results.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SessionInfo {
    /// Name of the session.
    pub(super) session_name: String,
    /// `idle`, `busy` or `ended`.
    pub(super) state: &'static str,
    /// Working directory of the shell.
    pub(super) cwd: String,
    /// First line of the running command.
    pub(super) command: Option<String>,
    /// Duration of the running command so far, in seconds.
    pub(super) running_seconds: Option<f64>,
    /// Exit code of the last command, or of the shell if it has ended.
    pub(super) last_exit_code: Option<i32>,
    /// Latest output as plain text; only in results of BashView.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) output: Option<String>,
}

/// A list of sessions in structured results.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SessionList {
    /// The sessions.
    pub(super) sessions: Vec<SessionInfo>,
}

/// The reply for a command that has ended. `first` is its first line.
pub(super) fn finished(session: &Session, finished: &Finished, first: &str) -> Reply {
    let last = format!(
        "[exit code {}, {}, in {}]",
        finished.exit_code,
        seconds(finished.duration),
        finished.cwd.display()
    );
    let end = if finished.ended_shell {
        format!(
            "[the shell of session {} ended with the command; the next Bash in that session starts a new shell]",
            session.name
        )
    } else {
        String::new()
    };
    let output = display_output(&finished.output.text);
    Reply::text(join_lines(&[first, output, &last, &end])).with_structured(CommandResult {
        session_name: session.name.clone(),
        output: finished.output.text.clone(),
        exit_code: Some(finished.exit_code),
        is_running: false,
        duration_seconds: rounded(finished.duration),
        cwd: finished.cwd.display().to_string(),
        is_cut: finished.output.is_cut,
        note: note(&[first, &end]),
    })
}

/// The reply for a command that is running; `reason` says why the call returns now.
pub(super) fn running(session: &Session, first: &str, reason: &str) -> Reply {
    let cwd = session.cwd();
    let state = session.state();
    let (is_running, duration) = match (&state.activity, &state.last) {
        (Activity::Command(running), _) => (true, running.since.elapsed()),
        (_, Some(last)) => {
            let last = last.clone();
            drop(state);
            return finished(session, &last, first);
        }
        _ => (false, Duration::ZERO),
    };
    let output = state.screen.excerpt();
    let cwd = cwd
        .unwrap_or_else(|| state.cwd.clone())
        .display()
        .to_string();
    let last = format!(
        "[{reason} It has been running for {}. BashView shows its output, BashWriteToProcess types into it, BashStop stops it. \
         Session {} is busy until it ends]",
        seconds(duration),
        session.name
    );
    let note = note(&[first, &last]);
    Reply::text(join_lines(&[first, display_output(&output.text), &last])).with_structured(
        CommandResult {
            session_name: session.name.clone(),
            output: output.text,
            exit_code: None,
            is_running,
            duration_seconds: rounded(duration),
            cwd,
            is_cut: output.is_cut,
            note,
        },
    )
}

/// A session as a line of text and as a structured result.
pub(super) fn session(session: &Session) -> (String, SessionInfo) {
    let cwd = session.cwd();
    let state = session.state();
    let cwd = cwd
        .unwrap_or_else(|| state.cwd.clone())
        .display()
        .to_string();
    // The first command is internal.
    let last = state.last.as_ref().filter(|last| last.number > 1);
    let mut info = SessionInfo {
        session_name: session.name.clone(),
        state: "idle",
        cwd: cwd.clone(),
        command: None,
        running_seconds: None,
        last_exit_code: last.map(|last| last.exit_code),
        output: None,
    };
    let line = match &state.activity {
        Activity::Idle => match last {
            Some(last) => format!("idle, last exit code {}", last.exit_code),
            None => "idle, no command has run yet".to_owned(),
        },
        Activity::Command(running) if running.number == 1 => {
            info.state = "busy";
            "busy, the shell is starting".to_owned()
        }
        Activity::Command(running) => {
            info.state = "busy";
            info.command = Some(short(&running.command));
            info.running_seconds = Some(rounded(running.since.elapsed()));
            let about = running
                .description
                .as_ref()
                .map_or_else(String::new, |text| format!(" ({})", short(text)));
            let time = seconds(running.since.elapsed());
            format!("busy for {time} with `{}`{about}", short(&running.command))
        }
        Activity::Ended(code) => {
            info.state = "ended";
            info.last_exit_code = Some(*code);
            format!("ended with exit code {code}; Bash starts a new shell")
        }
    };
    (format!("{}: {line}; in {cwd}", session.name), info)
}

/// An output, or a note if it is empty.
pub(super) fn display_output(output: &str) -> &str {
    if output.is_empty() {
        "[no output]"
    } else {
        output
    }
}

/// Joins the parts that are not empty.
fn join_lines(parts: &[&str]) -> String {
    let parts = parts.iter().copied().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("\n")
}

fn note(parts: &[&str]) -> Option<String> {
    Some(join_lines(parts)).filter(|note| !note.is_empty())
}

/// The first line of a command, shortened.
pub(super) fn short(command: &str) -> String {
    let line = command.trim().lines().next().unwrap_or_default();
    let end = line.floor_char_boundary(120);
    let is_all = end == command.trim().len();
    format!("{}{}", &line[..end], if is_all { "" } else { " …" })
}

/// A duration as text.
pub(super) fn seconds(time: Duration) -> String {
    if time < Duration::from_secs(10) {
        format!("{:.2} s", time.as_secs_f64())
    } else {
        format!("{} s", time.as_secs())
    }
}

/// A duration in seconds, rounded to milliseconds.
pub(super) fn rounded(time: Duration) -> f64 {
    (time.as_secs_f64() * 1_000.0).round() / 1_000.0
}
