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

mod files;
mod log;

use std::cell::{OnceCell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use rustix::rand::{GetRandomFlags, getrandom};
use sandyard_wire::ConnectError;
use sandyard_wire::process::{ProcessConfig, StartRequest};
use sandyard_wire::signature::secrets_match;
use tokio::time::Instant;

use self::files::Found;
use crate::config::StartFiles;
use crate::process::{self, Process, Unlisted};
use crate::state::Agent;
use crate::user::Accounts;

pub(crate) use self::log::Log;

/// What `Process.List` calls it.
const TAG: &str = "start";

/// The variable with the program's key to `GET /envs`.
const ENVS_TOKEN: &str = "SANDYARD_ENVS_TOKEN";

/// How long after its start the program may take to listen.
const COMING_UP: Duration = Duration::from_secs(60);

/// The start program as the agent knows it.
#[derive(Debug, Default)]
pub(crate) struct Start {
    state: RefCell<State>,
    envs_token: OnceCell<String>,
}

#[derive(Debug, Default)]
enum State {
    /// There is none, or it could not be run.
    #[default]
    Absent,
    /// About to run.
    Due { ports: Vec<u16> },
    /// It ran, and may run still.
    Run {
        process: Rc<Process>,
        ports: Vec<u16>,
        since: Instant,
    },
}

impl Start {
    /// Whether something may soon listen on a port where nothing does.
    pub(crate) fn is_coming_up(&self, port: u16) -> bool {
        match &*self.state.borrow() {
            State::Absent => false,
            State::Due { ports } => ports.contains(&port),
            State::Run {
                process,
                ports,
                since,
            } => ports.contains(&port) && process.is_running() && since.elapsed() < COMING_UP,
        }
    }

    /// Whether this is the program's key to the sandbox's variables.
    pub(crate) fn is_envs_token(&self, shown: &str) -> bool {
        let token = self.envs_token.get();
        token.is_some_and(|token| secrets_match(shown, token))
    }
}

/// Looks for a start program and lets it be run in the background.
pub(crate) fn begin(agent: &Rc<Agent>, files: &StartFiles) {
    let Some(found) = files::find(&files.folder) else {
        return;
    };
    // Before anybody can ask for one of them.
    *agent.start.state.borrow_mut() = State::Due {
        ports: found.ports.clone(),
    };
    let log = files.log.clone();
    let agent = agent.clone();
    tokio::task::spawn_local(async move {
        let ports = found.ports.clone();
        let since = Instant::now();
        let state = match run(agent.clone(), found, log).await {
            Some(process) => State::Run {
                process,
                ports,
                since,
            },
            None => State::Absent,
        };
        *agent.start.state.borrow_mut() = state;
    });
}

async fn run(agent: Rc<Agent>, found: Found, log_path: PathBuf) -> Option<Rc<Process>> {
    let accounts = Accounts::load();
    let name = found.user.as_deref().unwrap_or("root");
    let account = match accounts.find(name) {
        Ok(account) => account.clone(),
        Err(error) => {
            Log::open(log_path, None).note(&explain(&found, &error));
            return None;
        }
    };
    let log = Log::open(log_path, Some((account.uid, account.gid)));
    let home = Some(account.home.as_path()).filter(|home| home.is_dir());
    let request = StartRequest {
        process: ProcessConfig {
            cmd: found.program.to_string_lossy().into_owned(),
            cwd: Some(home.map_or("/".into(), |home| home.to_string_lossy().into_owned())),
            ..ProcessConfig::default()
        },
        tag: Some(TAG.to_owned()),
        stdin: Some(false),
        ..StartRequest::default()
    };
    let unlisted = Unlisted {
        variable: token(&agent).map(|token| (ENVS_TOKEN, token)),
        log: Some(log.clone()),
    };
    match process::launch(agent, request, account, accounts, None, unlisted).await {
        Ok(process) => Some(process),
        Err(error) => {
            log.note(&explain(&found, &error));
            None
        }
    }
}

fn explain(found: &Found, error: &ConnectError) -> String {
    let program = found.program.display();
    format!("{program} was not run: {}", error.message)
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
