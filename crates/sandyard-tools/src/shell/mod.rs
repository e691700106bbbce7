//! Shells that last: real terminals with names; and one command in a shell of its own.
//!
//! | module | holds |
//! |---|---|
//! | `bash`, `others`, `once` | the tools |
//! | `sessions`, `session`, `state`, `follow` | shells by name; one of them; what it is doing; what its terminal says |
//! | `typed`, `marks` | how a command is given to a shell and how its end is known |
//! | `screen`, `escapes`, `kept` | plain text from a terminal, within bounds |
//! | `stop` | ends commands and sessions |
//! | `program` | which shell |
//! | `told` | what callers are told |

mod bash;
mod escapes;
mod follow;
mod kept;
mod marks;
mod once;
mod others;
mod program;
mod screen;
mod session;
mod sessions;
mod state;
pub(crate) mod stop;
#[cfg(test)]
mod tests;
mod told;
mod typed;

use crate::tool::Tool;

pub(crate) use sessions::Sessions;

/// The tools.
pub(crate) fn tools() -> Vec<Tool> {
    let mut tools = vec![others::init(), bash::bash()];
    tools.extend([
        others::view(),
        others::stop(),
        others::list(),
        others::write(),
        once::run_command(),
    ]);
    tools
}
