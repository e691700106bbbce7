//! Burying the dead: minders, and as first process of a sandbox every orphan.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for deaths from now on.
pub(crate) fn listen() -> io::Result<Signal> {
    signal(SignalKind::child())
}

/// Reaps for ever. How commands ended is told by their minders, so nothing here needs to be remembered.
pub(crate) async fn reap(mut deaths: Signal) {
    loop {
        while let Ok(Some(_)) = rustix::process::wait(rustix::process::WaitOptions::NOHANG) {}
        if deaths.recv().await.is_none() {
            return;
        }
    }
}
