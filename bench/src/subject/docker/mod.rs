//! Docker, asked over its socket and through its command line.
//!
//! Both ask for the limits that our own sandboxes have by default, so that neither side saves itself that work.

mod api;
mod cli;
mod tar;

use std::path::PathBuf;
use std::process::Command;

use sandyard_core::Limits;

use super::sdk::Sdk;

pub(crate) use self::api::DockerApi;
pub(crate) use self::cli::{DockerCli, Network};

/// Address and program of a private Docker.
#[derive(Clone, Debug)]
pub(crate) struct DockerConfig {
    /// The daemon's Unix socket.
    pub(crate) socket: PathBuf,
    /// The `docker` program that fits the daemon.
    pub(crate) program: PathBuf,
    /// An image that the daemon has and that holds `true`, `echo` and `sleep`.
    pub(crate) image: String,
    /// Limits of each container; Docker has no disk limit on most hosts.
    pub(crate) limits: Limits,
    /// What drives Docker's own SDK, if that is measured.
    pub(crate) sdk: Option<Sdk>,
}

impl DockerConfig {
    fn command(&self, verb: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg("--host")
            .arg(format!("unix://{}", self.socket.display()))
            .arg(verb);
        command
    }
}

/// Containers start some forty times slower, so a fraction of the samples takes as long.
fn fewer_samples(full: usize, fraction: usize) -> usize {
    (full / fraction).max(5)
}

/// Returns how many containers take part where sandboxes come in hundreds.
const CONTAINERS: usize = 20;
