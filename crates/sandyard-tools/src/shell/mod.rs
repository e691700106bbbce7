//! Shell sessions: named shells in real terminals that last between calls. And `run_command`, a single command in its own shell.
//!
//! | module | holds |
//! |---|---|
//! | `bash`, `session_tools`, `run_command` | the tools |
//! | `sessions`, `session`, `state`, `reader` | sessions by name; one session; its state; reading its terminal |
//! | `command_input`, `markers` | how a command is typed into a shell, and how its end is detected |
//! | `screen`, `escape_sequences`, `bounded_text` | plain text from terminal output, within limits |
//! | `stop` | stops commands and sessions |
//! | `program` | which shell to run |
//! | `replies` | replies about sessions and commands |

mod bash;
mod bounded_text;
mod command_input;
mod escape_sequences;
mod markers;
mod program;
mod reader;
mod replies;
mod run_command;
mod screen;
mod session;
mod session_tools;
mod sessions;
mod state;
pub(crate) mod stop;
#[cfg(test)]
mod tests;

use crate::tool::Tool;

pub(crate) use sessions::Sessions;

/// The tools.
pub(crate) fn tools() -> Vec<Tool> {
    vec![
        session_tools::init(),
        bash::bash(),
        session_tools::view(),
        session_tools::stop(),
        session_tools::list(),
        session_tools::write(),
        run_command::run_command(),
    ]
}
