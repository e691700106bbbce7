//! Preparing and starting the tool server.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{AtFlags, Gid, Mode, Uid};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use sandyard_wire::process::ProcessConfig;
use sha2::{Digest as _, Sha256};
use tokio::io::Interest;

use super::{Running, Setup, ToolServer, ToolsStart};
use crate::process::{Command, ForkedProgram, fork_program};
use crate::ready;
use crate::settings::Settings;
use crate::start::Log;
use crate::state::Agent;
use crate::user::{Account, Accounts};
use crate::workdir;

impl ToolServer {
    /// Starts the tool server and returns when it runs. The caller holds `starting`.
    pub(super) async fn launch(&self, agent: &Rc<Agent>) -> Result<Running, String> {
        let setup = self.setup.get().ok_or("there is no tool server")?;
        let settings = agent.settings.borrow().clone();
        let accounts = Accounts::load();
        let account = accounts.find(&settings.default_user);
        let account = account.map_err(|error| error.message)?.clone();
        let log = Log::open(setup.log.clone(), Some((account.uid, account.gid)));
        let started = start(agent, setup, &settings, &account, &accounts, &log).await;
        if let Err(problem) = &started {
            log.note(&format!("the tool server was not started: {problem}"));
        }
        started
    }
}

async fn start(
    agent: &Agent,
    setup: &Setup,
    settings: &Settings,
    account: &Account,
    accounts: &Accounts,
    log: &Log,
) -> Result<Running, String> {
    let wake = setup
        .wake
        .clone()
        .ok_or("the descriptors of the event loop were not found")?;
    let workspace = workdir::common(settings, account)
        .unwrap_or_else(|| workspace(&setup.workspace, account, settings));
    let config = ProcessConfig {
        cmd: "sandyard-tools".to_owned(),
        cwd: Some(workspace.to_string_lossy().into_owned()),
        ..ProcessConfig::default()
    };
    let command = Command::prepare(&config, account, accounts, settings);
    let command = command.map_err(|error| error.message)?;
    let (agent_end, server_end) = channel().map_err(|error| error.to_string())?;
    let listener = listen(setup.tools.port);
    let mut inherited_fds = vec![server_end.as_raw_fd()];
    inherited_fds.extend(listener.iter().map(|listener| listener.as_raw_fd()));
    let start = ToolsStart {
        connections: server_end,
        listener,
        token_hash: settings.access_token.as_deref().map(hash),
        env: command.variables(),
        home: account.home.clone(),
        workspace,
        user: account.name.clone(),
        port: setup.tools.port,
    };
    let run = setup.tools.run;
    let program = ForkedProgram {
        command,
        name: c"sandyard-tools",
        inherited_fds,
        wake,
        forget: &|| forget_token(agent),
        main: Box::new(move || run(start)),
    };
    let channel =
        ready::register(agent_end, Interest::WRITABLE).map_err(|error| error.to_string())?;
    let process = fork_program(program, log)
        .await
        .map_err(|error| error.message)?;
    Ok(Running {
        channel,
        process,
        log: log.clone(),
        is_stopped_by_agent: Default::default(),
    })
}

/// Overwrites the access token in the fork, but not every copy of it: see [`crate::process::ForkedProgram`].
fn forget_token(agent: &Agent) {
    let token = agent.settings.try_borrow_mut().ok();
    if let Some(token) = token.and_then(|mut settings| settings.access_token.take()) {
        let mut bytes = token.into_bytes();
        bytes.fill(0);
        std::hint::black_box(&bytes);
    }
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// A non-blocking socket pair: the agent's end and the tool server's.
fn channel() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let pair = rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
    Ok(pair?)
}

/// Listens on the port for programs inside; `None` when another program has it.
fn listen(port: u16) -> Option<OwnedFd> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok()?;
    listener.set_nonblocking(true).ok()?;
    Some(listener.into())
}

/// The workspace folder: it is created for the user when it is missing, or another folder is used.
fn workspace(workspace: &Path, account: &Account, settings: &Settings) -> PathBuf {
    if rustix::process::geteuid().is_root()
        && rustix::fs::mkdir(workspace, Mode::from_raw_mode(0o775)).is_ok()
    {
        // Where the ids are not mapped, the agent stays the owner, and the tool server runs as the agent's user then.
        let (uid, gid) = (Uid::from_raw(account.uid), Gid::from_raw(account.gid));
        let here = rustix::fs::CWD;
        let _ = rustix::fs::chownat(
            here,
            workspace,
            Some(uid),
            Some(gid),
            AtFlags::SYMLINK_NOFOLLOW,
        );
    }
    let candidates = [
        Some(workspace),
        settings.default_workdir.as_deref().map(Path::new),
        Some(account.home.as_path()),
    ];
    let found = candidates.into_iter().flatten().find(|path| path.is_dir());
    found.unwrap_or(Path::new("/")).to_owned()
}
