//! A program of the template's that runs in the background, and is waited for at its ports.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use sandyard_wire::ConnectError;
use sandyard_wire::process::{ProcessConfig, StartRequest};
use tokio::time::Instant;

use super::files::Found;
use super::log::Log;
use crate::process::{self, Process, Unlisted};
use crate::state::Agent;
use crate::user::Accounts;

/// How long after its start the program may take to listen.
const COMING_UP: Duration = Duration::from_secs(60);

/// How far a program is.
#[derive(Debug, Default)]
pub(super) enum Background {
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

/// A program and how to run it.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) found: Found,
    /// Who runs it unless a file says so.
    pub(super) user: String,
    /// What `Process.List` calls it.
    pub(super) tag: String,
    /// A variable that no list shows.
    pub(super) variable: Option<(&'static str, String)>,
    pub(super) log: PathBuf,
}

impl Background {
    /// Whether it may soon listen on a port where nothing does.
    pub(super) fn is_coming_up(&self, port: u16) -> bool {
        match self {
            Self::Absent => false,
            Self::Due { ports } => ports.contains(&port),
            Self::Run { ports, since, .. } => {
                ports.contains(&port) && self.is_there() && since.elapsed() < COMING_UP
            }
        }
    }

    /// Whether a port is one of its own.
    pub(super) fn is_for(&self, port: u16) -> bool {
        match self {
            Self::Absent => false,
            Self::Due { ports } | Self::Run { ports, .. } => ports.contains(&port),
        }
    }

    /// Whether it runs or is about to.
    pub(super) fn is_there(&self) -> bool {
        match self {
            Self::Absent => false,
            Self::Due { .. } => true,
            Self::Run { process, .. } => process.is_running(),
        }
    }

    /// Resolves when it has ended, or could not be run.
    pub(super) fn ended(&self) -> impl Future<Output = ()> + 'static {
        let process = match self {
            Self::Run { process, .. } => Some(process.clone()),
            Self::Absent | Self::Due { .. } => None,
        };
        async move {
            if let Some(process) = process {
                process.wait_over().await;
            }
        }
    }

    /// Runs a program.
    pub(super) async fn run(agent: Rc<Agent>, plan: Plan) -> Self {
        let ports = plan.found.ports.clone();
        let since = Instant::now();
        match launch(agent, plan).await {
            Some(process) => Self::Run {
                process,
                ports,
                since,
            },
            None => Self::Absent,
        }
    }
}

async fn launch(agent: Rc<Agent>, plan: Plan) -> Option<Rc<Process>> {
    let Plan { found, log, .. } = plan;
    let accounts = Accounts::load();
    let name = found.user.as_deref().unwrap_or(&plan.user);
    let account = match accounts.find(name) {
        Ok(account) => account.clone(),
        Err(error) => {
            Log::open(log, None).note(&explain(&found, &error));
            return None;
        }
    };
    let log = Log::open(log, Some((account.uid, account.gid)));
    let home = Some(account.home.as_path()).filter(|home| home.is_dir());
    let request = StartRequest {
        process: ProcessConfig {
            cmd: found.program.to_string_lossy().into_owned(),
            cwd: Some(home.map_or("/".into(), |home| home.to_string_lossy().into_owned())),
            ..ProcessConfig::default()
        },
        tag: Some(plan.tag),
        stdin: Some(false),
        ..StartRequest::default()
    };
    let unlisted = Unlisted {
        variable: plan.variable,
        log: Some(log.clone()),
        keep: None,
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
