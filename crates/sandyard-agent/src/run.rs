//! Starting and stopping the agent.

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

use crate::call::Origin;
use crate::config::AgentConfig;
use crate::event_loop::{self, WakePair};
use crate::server::{Listener, serve};
use crate::settings::Settings;
use crate::state::Agent;
use crate::{egress, fs, limits, reap, start};

/// How long all commands may take to end when the agent stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// Serves until `SIGTERM` or `SIGINT`; as the first process of a sandbox until it is killed from outside, unless
/// [`AgentConfig::ends_by_signal`] is set.
///
/// The calling process must have a single thread, because commands are forked without exec in between. A TCP address
/// that cannot be bound is ignored when there is a host listener.
///
/// # Errors
///
/// When there is no listener at all, or the event loop cannot be created.
pub fn run(config: AgentConfig) -> io::Result<()> {
    prepare_process(&config);
    let (runtime, wake) = event_loop::build()?;
    LocalSet::new().block_on(&runtime, serve_all(config, wake))
}

async fn serve_all(mut config: AgentConfig, wake: Option<WakePair>) -> io::Result<()> {
    let child_exits = reap::listen()?;
    let settings = Settings::take(&mut config);
    let agent = Rc::new(Agent::new(settings));
    agent.tools.set_up(&config, wake);
    if let Some(files) = &config.start {
        agent.services.set_up(files);
    }
    for (listener, origin) in listeners(&mut config)? {
        tokio::task::spawn_local(serve(agent.clone(), listener, origin));
    }
    if let Some(listeners) = config.egress.take() {
        egress::start(&agent.egress, listeners)?;
    }
    tokio::task::spawn_local(reap::reap(child_exits));
    if let Some(ready) = config.ready.take() {
        // The waiting side also notices a closed pipe.
        let _ = rustix::io::write(&ready, b"1");
    }
    if let Some(files) = config.start.take() {
        start::begin(&agent, &files);
    }
    if config.is_init && !config.ends_by_signal {
        // The kernel does not deliver signals without a handler to the first process, so no program inside can stop it by accident.
        std::future::pending::<()>().await;
    }
    until_signalled().await?;
    // Commands would die with the agent, but not the processes that they started.
    let _ = tokio::time::timeout(STOP_TIMEOUT, async {
        tokio::join!(agent.processes.kill_all(), agent.tools.end())
    })
    .await;
    Ok(())
}

async fn until_signalled() -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

fn listeners(config: &mut AgentConfig) -> io::Result<Vec<(Listener, Origin)>> {
    let mut listeners = Vec::new();
    if let Some(fd) = config.host_listener.take() {
        let listener = std::os::unix::net::UnixListener::from(fd);
        listener.set_nonblocking(true)?;
        listeners.push((
            Listener::Unix(UnixListener::from_std(listener)?),
            Origin::Host,
        ));
    }
    if let Some(fd) = config.tcp_listener.take() {
        listeners.push((Listener::Tcp(adopt_tcp(fd)?), Origin::Sandbox));
    }
    if let Some(address) = config.tcp {
        match bind_tcp(address) {
            Ok(listener) => listeners.push((Listener::Tcp(listener), Origin::Sandbox)),
            Err(error) if listeners.is_empty() => return Err(error),
            // A program inside may have taken the port; the host's listener works anyway.
            Err(_) => {}
        }
    }
    if listeners.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the agent has no listener",
        ));
    }
    Ok(listeners)
}

fn bind_tcp(address: SocketAddr) -> io::Result<TcpListener> {
    adopt_tcp(std::net::TcpListener::bind(address)?.into())
}

fn adopt_tcp(fd: OwnedFd) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::from(fd);
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// Sets up process state that the rest relies on.
fn prepare_process(config: &AgentConfig) {
    if !config.is_init {
        // Adopts orphans too: the first process of a foreign container may not reap them.
        let itself = rustix::process::getpid();
        let _ = rustix::process::set_child_subreaper(Some(itself));
    }
    limits::raise_open_files();
    // A client that disconnects must not end the agent. Commands get the default disposition back.
    // SAFETY: sets a disposition before any handler or thread exists.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    // New files get exactly the requested modes.
    rustix::process::umask(rustix::fs::Mode::empty());
    occupy_standard_streams();
}

/// Makes sure that descriptors 0 to 2 are taken, so that no pipe of a command ever gets one of those numbers.
fn occupy_standard_streams() {
    while let Ok(null) = fs::open(Path::new("/dev/null"), OFlags::RDWR) {
        if std::os::fd::AsRawFd::as_raw_fd(&null.as_fd()) > 2 {
            return;
        }
        // Stays open as long as the process lives.
        std::mem::forget(null);
    }
}
