//! Bringing the agent up.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use rustix::fs::OFlags;
use tokio::net::{TcpListener, UnixListener};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::LocalSet;

use crate::call::Door;
use crate::config::AgentConfig;
use crate::event_loop::{self, WakePair};
use crate::server::{Listener, serve};
use crate::settings::Settings;
use crate::state::Agent;
use crate::{egress, fs, limits, reap, start};

/// How long the end of all commands may take when the agent stops: on a busy machine a while.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// Serves until told to stop by `SIGTERM` or `SIGINT`; as first process of a sandbox, until killed from outside, unless told
/// otherwise.
///
/// Must be called by a process with a single thread, because commands are forked without exec in between. A TCP address
/// that cannot be bound is passed over when there is a host's door to serve.
///
/// # Errors
///
/// When there is no door at all, or the event loop cannot be made.
pub fn run(config: AgentConfig) -> io::Result<()> {
    prepare_process(&config);
    let (runtime, wake) = event_loop::build()?;
    LocalSet::new().block_on(&runtime, serve_all(config, wake))
}

async fn serve_all(mut config: AgentConfig, wake: Option<WakePair>) -> io::Result<()> {
    let deaths = reap::listen()?;
    let settings = Settings::take(&mut config);
    let agent = Rc::new(Agent::new(settings));
    agent.tools.set_up(&config, wake);
    if let Some(files) = &config.start {
        agent.services.set_up(files);
    }
    for (listener, door) in doors(&mut config)? {
        tokio::task::spawn_local(serve(agent.clone(), listener, door));
    }
    if let Some(doors) = config.egress.take() {
        egress::start(&agent.egress, doors)?;
    }
    tokio::task::spawn_local(reap::reap(deaths));
    if let Some(ready) = config.ready.take() {
        // Whoever waits for this notices a closed pipe too.
        let _ = rustix::io::write(&ready, b"1");
    }
    if let Some(files) = config.start.take() {
        start::begin(&agent, &files);
    }
    if config.is_init && !config.ends_by_signal {
        // The kernel keeps signals without a handler from the first process, so nobody inside can stop it by accident.
        std::future::pending::<()>().await;
    }
    until_told().await?;
    // Commands would die with the agent but what they started would not.
    let _ = tokio::time::timeout(STOP_TIMEOUT, async {
        tokio::join!(agent.processes.kill_all(), agent.tools.end())
    })
    .await;
    Ok(())
}

async fn until_told() -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

fn doors(config: &mut AgentConfig) -> io::Result<Vec<(Listener, Door)>> {
    let mut doors = Vec::new();
    if let Some(fd) = config.host_listener.take() {
        let listener = std::os::unix::net::UnixListener::from(fd);
        listener.set_nonblocking(true)?;
        doors.push((
            Listener::Unix(UnixListener::from_std(listener)?),
            Door::Host,
        ));
    }
    if let Some(fd) = config.tcp_listener.take() {
        doors.push((Listener::Tcp(adopt_tcp(fd)?), Door::Inside));
    }
    if let Some(address) = config.tcp {
        match bind_tcp(address) {
            Ok(listener) => doors.push((Listener::Tcp(listener), Door::Inside)),
            Err(error) if doors.is_empty() => return Err(error),
            // Somebody inside may have taken the port; the host's door works all the same.
            Err(_) => {}
        }
    }
    if doors.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the agent was given nothing to listen on",
        ));
    }
    Ok(doors)
}

fn bind_tcp(address: SocketAddr) -> io::Result<TcpListener> {
    adopt_tcp(std::net::TcpListener::bind(address)?.into())
}

fn adopt_tcp(fd: OwnedFd) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::from(fd);
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// Brings the process into the state the rest relies on.
fn prepare_process(config: &AgentConfig) {
    if !config.is_init {
        // Orphans come here too then; the first process of somebody else's container may not reap them.
        let itself = rustix::process::getpid();
        let _ = rustix::process::set_child_subreaper(Some(itself));
    }
    limits::raise_open_files();
    // A client that leaves must not end the agent; commands get the default back.
    // SAFETY: sets a disposition before any handler or thread exists.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    // Modes of new files are exactly those asked for.
    rustix::process::umask(rustix::fs::Mode::empty());
    occupy_standard_streams();
}

/// Makes sure that descriptors 0 to 2 are taken, so that no pipe of a command ever gets one of those numbers.
fn occupy_standard_streams() {
    while let Ok(null) = fs::open(Path::new("/dev/null"), OFlags::RDWR) {
        if std::os::fd::AsRawFd::as_raw_fd(&null.as_fd()) > 2 {
            return;
        }
        // Kept open for the life of the process.
        std::mem::forget(null);
    }
}
