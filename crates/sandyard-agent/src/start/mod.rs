//! The start program: the template's program that runs in every sandbox.
//!
//! ```text
//!  /etc/sandyard/start          executable; run every time the agent starts: create, start after stop, fork, ready spare
//!  /etc/sandyard/start.user     its user; root without this file
//!  /etc/sandyard/start.ports    its ports: numbers separated by white space or commas, `#` begins a comment
//!  /var/log/sandyard-start.log  its output, and why it was not run; see [`log`]
//! ```
//!
//! It is a process like any other: tagged `start`, in its own session, in its user's home, with the current environment of
//! commands. A ready spare does not have its sandbox's variables yet, so the program also gets [`ENVS_TOKEN`]: as access
//! token it is valid for `GET /envs` at the agent's port and for nothing else. It does not get the access token itself,
//! because that gives root through the agent.
//!
//! The agent starts it after the listeners are open, and errors in these files affect only the start program. A sandbox
//! that is paused and resumed does not start it again, because it kept running.
//!
//! A program that runs only on demand is a service, see [`services`].

mod background;
mod files;
mod log;
mod services;

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use rustix::rand::{GetRandomFlags, getrandom};
use sandyard_wire::signature::secrets_match;

use self::background::{Background, Plan};
use crate::config::StartFiles;
use crate::state::Agent;

pub(crate) use self::log::Log;
pub(crate) use self::services::Services;

/// The program's file name, and its tag in `Process.List`.
const NAME: &str = "start";

/// The variable with the program's token for `GET /envs`.
const ENVS_TOKEN: &str = "SANDYARD_ENVS_TOKEN";

/// The state of the start program.
#[derive(Debug, Default)]
pub(crate) struct Start {
    state: RefCell<Background>,
    envs_token: OnceCell<String>,
}

impl Start {
    /// Whether the program may soon listen on a port.
    pub(crate) fn is_starting(&self, port: u16) -> bool {
        self.state.borrow().is_starting(port)
    }

    /// Whether a port is one of the program's.
    pub(crate) fn owns_port(&self, port: u16) -> bool {
        self.state.borrow().owns_port(port)
    }

    /// Whether this is the program's token for the environment variables.
    pub(crate) fn is_envs_token(&self, presented: &str) -> bool {
        let token = self.envs_token.get();
        token.is_some_and(|token| secrets_match(presented, token))
    }
}

/// Starts the start program in the background, if there is one.
pub(crate) fn begin(agent: &Rc<Agent>, files: &StartFiles) {
    let found = match files::find(&files.folder, NAME) {
        Ok(Some(found)) => found,
        Ok(None) => return,
        Err(problem) => return Log::open(files.log(NAME), None).note(&problem),
    };
    // Set before any dial can ask for one of the ports.
    *agent.start.state.borrow_mut() = Background::Due {
        ports: found.ports.clone(),
    };
    let plan = Plan {
        program: found,
        user: "root".to_owned(),
        tag: NAME.to_owned(),
        variable: token(agent).map(|token| (ENVS_TOKEN, token)),
        log: files.log(NAME),
    };
    let agent = agent.clone();
    tokio::task::spawn_local(async move {
        let state = Background::run(agent.clone(), plan).await;
        *agent.start.state.borrow_mut() = state;
    });
}

/// Creates the program's token; `None` while the kernel has no randomness yet.
fn token(agent: &Agent) -> Option<String> {
    let mut bytes = [0_u8; 32];
    let filled = getrandom(&mut bytes[..], GetRandomFlags::NONBLOCK).ok()?;
    if filled != bytes.len() {
        return None;
    }
    let text = sandyard_core::random::hex(&bytes);
    agent.start.envs_token.set(text.clone()).ok()?;
    Some(text)
}
