//! The start program: what a template wants to have running in every sandbox made from it.
//!
//! ```text
//!  /etc/sandyard/start          executable; run every time the agent starts: create, start after stop, fork, ready spare
//!  /etc/sandyard/start.user     who runs it; root without this file
//!  /etc/sandyard/start.ports    where it will listen: numbers apart by white space or commas, `#` begins a comment
//!  /var/log/sandyard-start.log  what it says, and why it was not run; see [`log`]
//! ```
//!
//! It is a process like any other: tagged `start`, in a session of its own, in its user's home, with a command's environment
//! as it is at that moment. A ready spare has none of the variables its sandbox will get, so the program is also given
//! [`ENVS_TOKEN`]: shown as access token this is good for `GET /envs` at the agent's port and for nothing else. The access
//! token itself stays outside, since whoever has that is root through the agent.
//!
//! It is started after the doors are open, and whatever is wrong with these files costs the start program only. A sandbox
//! that is paused and resumed does not start it again: it was never gone.
//!
//! What is run only when somebody asks for it is a service, see [`services`].

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

/// The program's name, and what `Process.List` calls it.
const NAME: &str = "start";

/// The variable with the program's key to `GET /envs`.
const ENVS_TOKEN: &str = "SANDYARD_ENVS_TOKEN";

/// The start program as the agent knows it.
#[derive(Debug, Default)]
pub(crate) struct Start {
    state: RefCell<Background>,
    envs_token: OnceCell<String>,
}

impl Start {
    /// Whether something may soon listen on a port where nothing does.
    pub(crate) fn is_coming_up(&self, port: u16) -> bool {
        self.state.borrow().is_coming_up(port)
    }

    /// Whether the program said that it listens on a port.
    pub(crate) fn is_for(&self, port: u16) -> bool {
        self.state.borrow().is_for(port)
    }

    /// Whether this is the program's key to the sandbox's variables.
    pub(crate) fn is_envs_token(&self, shown: &str) -> bool {
        let token = self.envs_token.get();
        token.is_some_and(|token| secrets_match(shown, token))
    }
}

/// Looks for a start program and lets it be run in the background.
pub(crate) fn begin(agent: &Rc<Agent>, files: &StartFiles) {
    let found = match files::find(&files.folder, NAME) {
        Ok(Some(found)) => found,
        Ok(None) => return,
        Err(problem) => return Log::open(files.log(NAME), None).note(&problem),
    };
    // Before anybody can ask for one of them.
    *agent.start.state.borrow_mut() = Background::Due {
        ports: found.ports.clone(),
    };
    let plan = Plan {
        found,
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

/// Makes the program's key; none where there is no randomness yet, and the program does without.
fn token(agent: &Agent) -> Option<String> {
    let mut bytes = [0_u8; 32];
    let filled = getrandom(&mut bytes[..], GetRandomFlags::NONBLOCK).ok()?;
    if filled != bytes.len() {
        return None;
    }
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    agent.start.envs_token.set(text.clone()).ok()?;
    Some(text)
}
