//! Reaping child processes: supervisors, and every orphan if the agent is the first process of a sandbox.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Starts to listen for ended children.
pub(crate) fn listen() -> io::Result<Signal> {
    signal(SignalKind::child())
}

/// Reaps forever. Supervisors report how commands ended, so exit statuses are not needed here.
pub(crate) async fn reap(mut child_exits: Signal) {
    loop {
        while let Ok(Some(_)) = rustix::process::wait(rustix::process::WaitOptions::NOHANG) {}
        if child_exits.recv().await.is_none() {
            return;
        }
    }
}
