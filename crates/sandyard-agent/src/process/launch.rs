//! Starting a process for a request.

use std::io;
use std::rc::Rc;

use sandyard_wire::process::{PtySize, StartRequest};
use sandyard_wire::{Code, ConnectError};
use tokio::io::Interest;
use tokio::time::Instant;

use super::command::{Command, display_program};
use super::exec::Execute;
use super::input::Input;
use super::pump::{self, Source};
use super::report::{Report, Stage};
use super::retention::Retention;
use super::stdio;
use super::supervisor::fork_supervisor;
use super::tracked_process::{NewProcess, Process};
use crate::ready;
use crate::start::Log;
use crate::state::Agent;
use crate::user::{Account, Accounts};

/// The size of a terminal when the caller names none.
const DEFAULT_SIZE: PtySize = PtySize { cols: 80, rows: 24 };

/// Options of a process that `List` does not show.
#[derive(Debug, Default)]
pub(crate) struct LaunchOptions {
    /// An additional environment variable.
    pub(crate) variable: Option<(&'static str, String)>,
    /// The log that gets its output instead of memory; readers then get none.
    pub(crate) log: Option<Log>,
    /// The id under which its output and end are retained until they are released.
    pub(crate) retain_as: Option<String>,
}

/// Starts a command and returns when its program runs.
pub(crate) async fn launch(
    agent: Rc<Agent>,
    request: StartRequest,
    account: Account,
    accounts: Accounts,
    deadline: Option<Instant>,
    options: LaunchOptions,
) -> Result<Rc<Process>, ConnectError> {
    agent.processes.check_capacity()?;
    let settings = agent.settings.borrow().clone();
    let mut command = Command::prepare(&request.process, &account, &accounts, &settings)?;
    if let Some((name, value)) = &options.variable {
        command.add_variable(name, value)?;
    }
    let owner = command.identity.as_ref().map(|identity| identity.uid);
    let (child, ends) = match request.pty {
        Some(pty) => stdio::terminal(sane(pty.size), owner),
        None => stdio::pipes(request.stdin.unwrap_or(true), owner),
    }
    .map_err(|error| no_resources(&error))?;
    let supervisor =
        fork_supervisor(&Execute::new(&command), child).map_err(|error| no_resources(&error))?;
    let status = ready::register(supervisor.status, Interest::READABLE)
        .map_err(|error| no_resources(&error))?;
    let pid = match pump::next_report(&status).await {
        Some(Report::Started { pid }) => pid,
        Some(Report::Failed { stage, errno }) => {
            return Err(start_error(&command, stage, errno));
        }
        _ => {
            return Err(ConnectError::internal(
                "the process was killed while it started",
            ));
        }
    };
    let input = ends.input.map(Input::new).transpose();
    let sources = ends.outputs.into_iter().map(|(channel, fd)| {
        let fd = ready::register(fd, Interest::READABLE)?;
        Ok(Source { channel, fd })
    });
    let sources = sources.collect::<io::Result<Vec<_>>>();
    let process = Rc::new(Process::new(NewProcess {
        pid: pid.unsigned_abs(),
        supervisor: supervisor.pid,
        tag: request.tag,
        config: request.process,
        cwd: command.cwd.clone(),
        input: input.map_err(|error| no_resources(&error))?,
        terminal: ends.terminal,
        ring_bytes: settings.ring_bytes,
        budget: agent.processes.budget(),
        counters: agent.counters.clone(),
        log: options.log,
        retention: options
            .retain_as
            .map(|id| Retention::new(id, agent.processes.spool_budget())),
    }));
    let sources = sources.map_err(|error| no_resources(&error))?;
    agent.processes.add(process.clone());
    let pumped = process.clone();
    tokio::task::spawn_local(async move {
        let left_open = pump::run(&pumped, sources, status, deadline).await;
        agent.processes.note_end(&pumped);
        drop(pumped);
        pump::discard(left_open).await;
    });
    Ok(process)
}

fn sane(size: Option<PtySize>) -> PtySize {
    let size = size.unwrap_or(DEFAULT_SIZE);
    PtySize {
        cols: if size.cols == 0 {
            DEFAULT_SIZE.cols
        } else {
            size.cols
        },
        rows: if size.rows == 0 {
            DEFAULT_SIZE.rows
        } else {
            size.rows
        },
    }
}

pub(super) fn no_resources(error: &io::Error) -> ConnectError {
    ConnectError::new(
        Code::ResourceExhausted,
        format!("cannot start a process: {error}"),
    )
}

pub(super) fn start_error(command: &Command, stage: Stage, errno: i32) -> ConnectError {
    let cause = io::Error::from_raw_os_error(errno);
    let program = display_program(command);
    match stage {
        Stage::Fork | Stage::Stdio => no_resources(&cause),
        Stage::Identity => ConnectError::internal(format!("cannot become the user: {cause}")),
        Stage::WorkingDirectory => ConnectError::invalid_argument(format!(
            "cannot enter cwd '{}': {cause}",
            command.cwd.to_string_lossy()
        )),
        Stage::Exec => {
            ConnectError::invalid_argument(format!("cannot execute '{program}': {cause}"))
        }
    }
}
