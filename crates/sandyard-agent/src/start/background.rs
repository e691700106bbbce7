//! A template's program that runs in the background, and whose ports dials wait for.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use sandyard_wire::ConnectError;
use sandyard_wire::process::{ProcessConfig, StartRequest};
use tokio::time::Instant;

use super::files::StartProgram;
use super::log::Log;
use crate::process::{self, LaunchOptions, Process};
use crate::state::Agent;
use crate::user::Accounts;

/// How long the program may take to listen after its start.
const START_TIME: Duration = Duration::from_secs(60);

/// The state of a program.
#[derive(Debug, Default)]
pub(super) enum Background {
    /// There is no program, or it could not be started.
    #[default]
    Absent,
    /// About to run.
    Due { ports: Vec<u16> },
    /// It was started, and may still run.
    Started {
        process: Rc<Process>,
        ports: Vec<u16>,
        since: Instant,
    },
}

/// How to run a program.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) program: StartProgram,
    /// Its user, unless a file names another.
    pub(super) user: String,
    /// Its tag in `Process.List`.
    pub(super) tag: String,
    /// An environment variable that `Process.List` does not show.
    pub(super) variable: Option<(&'static str, String)>,
    pub(super) log: PathBuf,
}

impl Background {
    /// Whether it may soon listen on a port.
    pub(super) fn is_starting(&self, port: u16) -> bool {
        match self {
            Self::Absent => false,
            Self::Due { ports } => ports.contains(&port),
            Self::Started { ports, since, .. } => {
                ports.contains(&port) && self.is_active() && since.elapsed() < START_TIME
            }
        }
    }

    /// Whether a port is one of its own.
    pub(super) fn owns_port(&self, port: u16) -> bool {
        match self {
            Self::Absent => false,
            Self::Due { ports } | Self::Started { ports, .. } => ports.contains(&port),
        }
    }

    /// Whether it runs or is about to run.
    pub(super) fn is_active(&self) -> bool {
        match self {
            Self::Absent => false,
            Self::Due { .. } => true,
            Self::Started { process, .. } => process.is_running(),
        }
    }

    /// Resolves when it has ended, or could not be started.
    pub(super) fn ended(&self) -> impl Future<Output = ()> + 'static {
        let process = match self {
            Self::Started { process, .. } => Some(process.clone()),
            Self::Absent | Self::Due { .. } => None,
        };
        async move {
            if let Some(process) = process {
                process.wait_exited().await;
            }
        }
    }

    /// Runs a program.
    pub(super) async fn run(agent: Rc<Agent>, plan: Plan) -> Self {
        let ports = plan.program.ports.clone();
        let since = Instant::now();
        match launch(agent, plan).await {
            Some(process) => Self::Started {
                process,
                ports,
                since,
            },
            None => Self::Absent,
        }
    }
}

async fn launch(agent: Rc<Agent>, plan: Plan) -> Option<Rc<Process>> {
    let Plan { program, log, .. } = plan;
    let accounts = Accounts::load();
    let name = program.user.as_deref().unwrap_or(&plan.user);
    let account = match accounts.find(name) {
        Ok(account) => account.clone(),
        Err(error) => {
            Log::open(log, None).note(&explain(&program, &error));
            return None;
        }
    };
    let log = Log::open(log, Some((account.uid, account.gid)));
    let home = Some(account.home.as_path()).filter(|home| home.is_dir());
    let request = StartRequest {
        process: ProcessConfig {
            cmd: program.program.to_string_lossy().into_owned(),
            cwd: Some(home.map_or("/".into(), |home| home.to_string_lossy().into_owned())),
            ..ProcessConfig::default()
        },
        tag: Some(plan.tag),
        stdin: Some(false),
        ..StartRequest::default()
    };
    let options = LaunchOptions {
        variable: plan.variable,
        log: Some(log.clone()),
        retain_as: None,
    };
    match process::launch(agent, request, account, accounts, None, options).await {
        Ok(process) => Some(process),
        Err(error) => {
            log.note(&explain(&program, &error));
            None
        }
    }
}

fn explain(program: &StartProgram, error: &ConnectError) -> String {
    let path = program.program.display();
    format!("{path} was not started: {}", error.message)
}
