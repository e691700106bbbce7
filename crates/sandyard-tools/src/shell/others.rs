//! The other tools of sessions: make, look, stop, list, type.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::{Instant, timeout, timeout_at};

use super::session::Session;
use super::sessions::{Had, MAX_SESSIONS, check_name};
use super::state::Doing;
use super::{bash, stop as stopping, told};
use crate::reply::{Answer, MAX_TEXT, Problem, Reply};
use crate::tool::{Effect, Nothing, Tool, tool};
use crate::workshop::Workshop;

/// Longest input at once.
const MAX_INPUT: usize = 64 * 1024;
/// How long what follows an input is waited for.
const MAX_REACTION: Duration = Duration::from_secs(2);
/// How long it must be quiet for the reaction to be over.
const QUIET: Duration = Duration::from_millis(250);

#[derive(Deserialize, JsonSchema)]
struct Init {
    /// Name of the new session: letters, digits, `_`, `.` and `-`.
    session_name: String,
    /// Folder to begin in, inside the workspace. Without it: the workspace itself.
    #[serde(default)]
    start_directory: Option<String>,
}

/// `BashInit`.
pub(super) fn init() -> Tool {
    tool::<Init, _, _>(
        "BashInit",
        "Make a shell session",
        Effect::Adds,
        "Makes a named shell session: a real terminal with bash in it that stays until it is ended. Only needed to begin in a \
         particular folder: Bash makes a session by itself.",
        |workshop, arguments, _| async move {
            check_name(&arguments.session_name)?;
            let folder = match arguments.start_directory.as_deref() {
                None | Some("") => None,
                Some(path) => {
                    let folder = workshop.workspace.resolve(path)?;
                    if !folder.is_dir() {
                        return Err(Problem::new(format!(
                            "{path} is not a folder: make it first"
                        )));
                    }
                    Some(folder)
                }
            };
            let name = &arguments.session_name;
            if let Ok(before) = workshop.sessions.find(name)
                && before.is_ended()
            {
                // Else the new one would begin where that one was.
                workshop.sessions.forget(&before);
            }
            let (session, had) = workshop
                .sessions
                .obtain(&workshop.workspace, name, folder)
                .await?;
            let (line, _) = told::session(&session);
            match had {
                Had::Already => Err(Problem::new(format!(
                    "there is such a session already ({line}). Use it with Bash, or end it with BashStop and kill_session"
                ))),
                _ => Ok(Reply::text(format!("the session is ready: {line}"))),
            }
        },
    )
}

#[derive(Deserialize, JsonSchema)]
struct View {
    /// Names of the sessions to look at. Empty: all.
    #[serde(default)]
    session_names: Vec<String>,
}

/// `BashView`.
pub(super) fn view() -> Tool {
    tool::<View, _, _>(
        "BashView",
        "Look at shell sessions",
        Effect::Looks,
        "Shows the latest output of each session, what runs in it and for how long, the folder it is in and the last \
         exit code.",
        |workshop, arguments, _| async move { look(&workshop, &arguments.session_names) },
    )
    .answers::<told::SeenAll>()
}

fn look(workshop: &Workshop, names: &[String]) -> Answer {
    let mut seen = HashSet::new();
    let names: Vec<_> = names.iter().filter(|name| seen.insert(*name)).collect();
    if names.len() > MAX_SESSIONS {
        return Err(Problem::new(format!(
            "session_names has {} names: there are never more than {MAX_SESSIONS} sessions. Leave it out to see all",
            names.len()
        )));
    }
    let sessions = if names.is_empty() {
        workshop.sessions.all()
    } else {
        names
            .into_iter()
            .map(|name| workshop.sessions.find(name))
            .collect::<Result<_, _>>()?
    };
    // All of them are to fit into one reply, the last one too.
    let room = MAX_TEXT / 2 / sessions.len().max(1);
    let mut reply = Reply::default();
    let mut all = Vec::new();
    if sessions.is_empty() {
        reply = reply.with_text("there are no sessions. Bash makes one");
    }
    for session in sessions {
        let (line, mut seen) = told::session(&session);
        let output = end_of(session.state().screen.shown().text, room);
        reply = reply.with_text(format!("[{line}]\n{}", told::shown(&output)));
        seen.output = Some(output);
        all.push(seen);
    }
    Ok(reply.with_structured(told::SeenAll { sessions: all }))
}

/// The end of an output, which is what is new in it.
fn end_of(output: String, room: usize) -> String {
    if output.len() <= room {
        return output;
    }
    let start = output.floor_char_boundary(output.len() - room);
    let end = &output[start..];
    format!(
        "[cut: the last {} of {} bytes are shown; look at this session alone for more]\n{end}",
        end.len(),
        output.len()
    )
}

/// `BashList`.
pub(super) fn list() -> Tool {
    tool::<Nothing, _, _>(
        "BashList",
        "List shell sessions",
        Effect::Looks,
        "Lists the shell sessions: name, whether idle, busy or ended, and folder.",
        |workshop, _, _| async move {
            let (lines, sessions): (Vec<_>, Vec<_>) = workshop
                .sessions
                .all()
                .iter()
                .map(|session| told::session(session))
                .unzip();
            let text = if lines.is_empty() {
                "there are no sessions. Bash makes one".into()
            } else {
                lines.join("\n")
            };
            Ok(Reply::text(text).with_structured(told::SeenAll { sessions }))
        },
    )
    .answers::<told::SeenAll>()
}

#[derive(Deserialize, JsonSchema)]
struct Stop {
    /// The session whose command is stopped.
    session_name: String,
    /// Set to true to end the whole session, with everything that was started in it.
    #[serde(default)]
    kill_session: bool,
}

/// `BashStop`.
pub(super) fn stop() -> Tool {
    tool::<Stop, _, _>(
        "BashStop",
        "Stop a command",
        Effect::Changes,
        "Stops the command that runs in a session: by Ctrl-C, and harder where that does not help. The session stays, with its \
         folder and variables. With kill_session it ends as a whole, background jobs too.",
        |workshop, arguments, _| async move {
            let session = workshop.sessions.find(&arguments.session_name)?;
            if arguments.kill_session {
                // Goes on when the caller does not wait for it.
                let ending = session.clone();
                let ended = tokio::spawn(async move { stopping::end(&ending).await }).await;
                return if matches!(ended, Ok(true)) {
                    workshop.sessions.forget(&session);
                    Ok(Reply::text(format!(
                        "session {} was ended with everything in it",
                        session.name
                    )))
                } else {
                    Err(Problem::new(
                        "the session has processes that do not end. Try again in a moment",
                    ))
                };
            }
            let number = match &session.state().doing {
                Doing::Command(running) => running.number,
                _ => {
                    return Ok(Reply::text(format!(
                        "nothing runs in session {}",
                        session.name
                    )));
                }
            };
            let stopping_session = session.clone();
            let stopped =
                tokio::spawn(async move { stopping::interrupt(&stopping_session, number).await })
                    .await;
            if !matches!(stopped, Ok(true)) {
                return Err(Problem::new(format!(
                    "the command in session {} does not stop, not even when killed: the shell itself is doing it. End \
                     the session \
                     with kill_session",
                    session.name
                )));
            }
            Ok(told::running(
                &session,
                "[stopped]",
                "Another command has begun.",
            ))
        },
    )
}

#[derive(Deserialize, JsonSchema)]
struct Write {
    /// The session whose program is typed into.
    session_name: String,
    /// What is typed. Control characters are keys: `\u0003` is Ctrl-C, `\u0004` Ctrl-D, `\u001b[A` the arrow up.
    input: String,
    /// Whether Enter is pressed after it.
    #[serde(default = "bash::yes")]
    press_enter: bool,
}

/// `BashWriteToProcess`.
pub(super) fn write() -> Tool {
    tool::<Write, _, _>(
        "BashWriteToProcess",
        "Type into a command",
        Effect::ChangesOutside,
        "Types into the program that runs in a session, such as an answer to its question, and answers the output that follows \
         within a moment.",
        |workshop, arguments, call| async move {
            let session = workshop.sessions.find(&arguments.session_name)?;
            if arguments.input.len() > MAX_INPUT {
                return Err(Problem::new(format!("the input is too long: {MAX_INPUT} bytes are the most at once")));
            }
            let mut input = arguments.input.into_bytes();
            if arguments.press_enter {
                input.push(b'\r');
            }
            tokio::select! {
                answer = type_into(&session, &input) => answer,
                () = call.cancelled.cancelled() => Err(Problem::new("the call was cancelled")),
            }
        },
    )
    .answers::<told::Ran>()
}

async fn type_into(session: &Arc<Session>, input: &[u8]) -> Answer {
    let number = match &session.state().doing {
        Doing::Command(running) => running.number,
        _ => {
            return Err(Problem::new(format!(
                "nothing runs in session {} that could read it. Run commands with Bash",
                session.name
            )));
        }
    };
    let mut steps = session.steps();
    // Keys that come before the command would be taken for a part of it, or end it.
    let begun =
        steps.wait_for(|steps| steps.begun >= number || steps.finished >= number || steps.is_ended);
    let _ = timeout(stopping::MAX_BEGIN, begun).await;
    steps.mark_unchanged();
    session.write(input).await?;
    let end = Instant::now() + MAX_REACTION;
    let mut quiet_at = end;
    // The first words may take a while; then it is over as soon as nothing more comes.
    while let Ok(Ok(())) = timeout_at(quiet_at, steps.changed()).await {
        let steps = *steps.borrow_and_update();
        if steps.finished >= number || steps.is_ended {
            break;
        }
        quiet_at = end.min(Instant::now() + QUIET);
    }
    Ok(told::running(session, "", "The input was typed."))
}
