//! `BashInit`, `BashView`, `BashList`, `BashStop` and `BashWriteToProcess`.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::{Instant, timeout, timeout_at};

use super::session::Session;
use super::sessions::{MAX_SESSIONS, Obtained, check_name};
use super::state::Activity;
use super::{bash, replies, stop as stopping};
use crate::call::Call;
use crate::reply::{Answer, MAX_TEXT, Problem, Reply};
use crate::tool::{Effect, NoArguments, Tool, tool};
use crate::tool_state::ToolState;

/// Maximum length of an input, in bytes.
const MAX_INPUT: usize = 64 * 1024;
/// How long to wait for output after an input.
const MAX_REACTION: Duration = Duration::from_secs(2);
/// How long without output until the reaction to an input is over.
const QUIET: Duration = Duration::from_millis(250);

#[derive(Deserialize, JsonSchema)]
struct Init {
    /// Name of the new session: letters, digits, `_`, `.` and `-`.
    session_name: String,
    /// Working directory of the new session, absolute or relative to the workspace (default: the workspace).
    start_directory: Option<String>,
}

/// `BashInit`.
pub(super) fn init() -> Tool {
    tool("BashInit", Effect::Adds, create_session)
        .title("Create a shell session")
        .description("Create a named shell session: bash in a terminal, until it is stopped. Only needed to choose the working directory: Bash \
         creates missing sessions.")
}

async fn create_session(tool_state: Arc<ToolState>, arguments: Init, _: Call) -> Answer {
    let name = &arguments.session_name;
    check_name(name)?;
    let folder = match arguments.start_directory.as_deref() {
        None | Some("") => None,
        Some(path) => {
            let folder = tool_state.workspace.resolve(path)?;
            if !folder.is_dir() {
                return Err(Problem::new(format!(
                    "{path} is not a folder: create it first"
                )));
            }
            Some(folder)
        }
    };
    let sessions = &tool_state.sessions;
    if let Ok(before) = sessions.find(name)
        && before.is_ended()
    {
        // Otherwise the new session would start in the old one's working directory.
        sessions.remove(&before);
    }
    let obtained = sessions.obtain(&tool_state.workspace, name, folder).await?;
    let (session, obtained) = obtained;
    let (line, _) = replies::session(&session);
    match obtained {
        Obtained::Existing => Err(Problem::new(format!(
            "the session exists already ({line}). Use it with Bash, or end it with BashStop and kill_session"
        ))),
        _ => Ok(Reply::text(format!("session created: {line}"))),
    }
}

#[derive(Deserialize, JsonSchema)]
struct View {
    /// Names of the sessions to show (default: all).
    #[serde(default)]
    session_names: Vec<String>,
}

/// `BashView`.
pub(super) fn view() -> Tool {
    tool("BashView", Effect::Reads, view_sessions)
        .title("View shell sessions")
        .description("Show shell sessions: the latest output, the running command and its duration, the working directory and the last exit code.")
        .with_output::<replies::SessionList>()
}

async fn view_sessions(tool_state: Arc<ToolState>, arguments: View, _: Call) -> Answer {
    let names = &arguments.session_names;
    let mut seen = HashSet::new();
    let names: Vec<_> = names.iter().filter(|name| seen.insert(*name)).collect();
    if names.len() > MAX_SESSIONS {
        return Err(Problem::new(format!(
            "session_names has {} names, the maximum is {MAX_SESSIONS}: omit it to see all sessions",
            names.len()
        )));
    }
    let sessions = if names.is_empty() {
        tool_state.sessions.all()
    } else {
        names
            .into_iter()
            .map(|name| tool_state.sessions.find(name))
            .collect::<Result<_, _>>()?
    };
    // All sessions must fit into one reply.
    let max_output = MAX_TEXT / 2 / sessions.len().max(1);
    let mut reply = Reply::default();
    let mut all = Vec::new();
    if sessions.is_empty() {
        reply = reply.with_text("there are no sessions: Bash creates one");
    }
    for session in sessions {
        let (line, mut seen) = replies::session(&session);
        let output = end_of(session.state().screen.excerpt().text, max_output);
        reply = reply.with_text(format!("[{line}]\n{}", replies::display_output(&output)));
        seen.output = Some(output);
        all.push(seen);
    }
    Ok(reply.with_structured(replies::SessionList { sessions: all }))
}

/// The end of an output, which is its newest part.
fn end_of(output: String, limit: usize) -> String {
    if output.len() <= limit {
        return output;
    }
    let start = output.floor_char_boundary(output.len() - limit);
    let end = &output[start..];
    format!(
        "[truncated: the last {} of {} bytes are shown; view this session alone for more]\n{end}",
        end.len(),
        output.len()
    )
}

/// `BashList`.
pub(super) fn list() -> Tool {
    tool("BashList", Effect::Reads, list_sessions)
        .title("List shell sessions")
        .description(
            "List shell sessions with their state (idle, busy or ended) and working directory.",
        )
        .with_output::<replies::SessionList>()
}

async fn list_sessions(tool_state: Arc<ToolState>, _: NoArguments, _: Call) -> Answer {
    let sessions = tool_state.sessions.all();
    let sessions = sessions.iter().map(|session| replies::session(session));
    let (lines, sessions): (Vec<_>, Vec<_>) = sessions.unzip();
    let text = match lines.is_empty() {
        true => "there are no sessions: Bash creates one".to_owned(),
        false => lines.join("\n"),
    };
    Ok(Reply::text(text).with_structured(replies::SessionList { sessions }))
}

#[derive(Deserialize, JsonSchema)]
struct Stop {
    /// Name of the session whose command to stop.
    session_name: String,
    /// Set to true to end the whole session and all processes started in it (default false).
    #[serde(default)]
    kill_session: bool,
}

/// `BashStop`.
pub(super) fn stop() -> Tool {
    tool("BashStop", Effect::Changes, stop_command)
        .title("Stop a command")
        .description("Stop the command that runs in a session: with Ctrl-C, then with signals if necessary. The session keeps its working directory \
         and variables. With kill_session the whole session ends, including background jobs.")
}

async fn stop_command(tool_state: Arc<ToolState>, arguments: Stop, _: Call) -> Answer {
    let session = tool_state.sessions.find(&arguments.session_name)?;
    let name = &session.name;
    if arguments.kill_session {
        // In its own task, so that it continues if the call is dropped.
        let ending = session.clone();
        let ended = tokio::spawn(async move { stopping::end(&ending).await }).await;
        if !matches!(ended, Ok(true)) {
            return Err(Problem::new(
                "some processes of the session do not end: try again in a moment",
            ));
        }
        tool_state.sessions.remove(&session);
        let text = format!("session {name} ended with all its processes");
        return Ok(Reply::text(text));
    }
    let number = match &session.state().activity {
        Activity::Command(running) => running.number,
        _ => return Ok(Reply::text(format!("no command runs in session {name}"))),
    };
    let stopping_session = session.clone();
    let stop = async move { stopping::interrupt(&stopping_session, number).await };
    if !matches!(tokio::spawn(stop).await, Ok(true)) {
        return Err(Problem::new(format!(
            "the command in session {name} does not stop, not even after SIGKILL: the shell itself runs it. End the session with \
             kill_session"
        )));
    }
    Ok(replies::running(
        &session,
        "[stopped]",
        "Another command has started.",
    ))
}

#[derive(Deserialize, JsonSchema)]
struct Write {
    /// Name of the session.
    session_name: String,
    /// Text to type. Control characters are keys: `\u0003` is Ctrl-C, `\u0004` is Ctrl-D, `\u001b[A` is arrow up.
    input: String,
    /// Whether to press Enter afterwards (default true).
    #[serde(default = "bash::yes")]
    press_enter: bool,
}

/// `BashWriteToProcess`.
pub(super) fn write() -> Tool {
    tool("BashWriteToProcess", Effect::ChangesExternal, type_input)
        .title("Type into a command")
        .description("Type into the program that runs in a session, for example to answer its question. Returns the output that follows within about \
         two seconds.")
        .with_output::<replies::CommandResult>()
}

async fn type_input(tool_state: Arc<ToolState>, arguments: Write, call: Call) -> Answer {
    let session = tool_state.sessions.find(&arguments.session_name)?;
    if arguments.input.len() > MAX_INPUT {
        return Err(Problem::new(format!(
            "the input is longer than {MAX_INPUT} bytes, the maximum for one call"
        )));
    }
    let mut input = arguments.input.into_bytes();
    if arguments.press_enter {
        input.push(b'\r');
    }
    call.unless_cancelled(type_into(&session, &input)).await
}

async fn type_into(session: &Arc<Session>, input: &[u8]) -> Answer {
    let number = match &session.state().activity {
        Activity::Command(running) => running.number,
        _ => {
            return Err(Problem::new(format!(
                "no command runs in session {} that could read the input. Run commands with Bash",
                session.name
            )));
        }
    };
    let mut counters = session.counters();
    // Input that arrives before the command starts would become a part of the command line.
    let started = counters.wait_for(|counters| {
        counters.started >= number || counters.finished >= number || counters.is_ended
    });
    let _ = timeout(stopping::MAX_BEGIN, started).await;
    counters.mark_unchanged();
    session.write(input).await?;
    let end = Instant::now() + MAX_REACTION;
    let mut quiet_at = end;
    // The first output may take a while. After that, wait until there is no more output.
    while let Ok(Ok(())) = timeout_at(quiet_at, counters.changed()).await {
        let counters = *counters.borrow_and_update();
        if counters.finished >= number || counters.is_ended {
            break;
        }
        quiet_at = end.min(Instant::now() + QUIET);
    }
    Ok(replies::running(session, "", "The input was typed."))
}
