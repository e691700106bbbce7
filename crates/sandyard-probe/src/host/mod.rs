//! The host's side: objects for the probe to reach for, planted for the time of a run, and a check afterwards that nothing changed.

mod files;
mod listeners;
mod objects;
mod process;
mod side_effects;

use std::io;
use std::path::PathBuf;

use crate::finding::Finding;
use crate::plan::Plan;

/// Why a plant could not be made.
#[derive(Debug, thiserror::Error)]
#[error("failed to plant {what} on the host")]
pub struct PlantError {
    what: &'static str,
    #[source]
    source: io::Error,
}

/// Everything planted. Dropping it takes it away again.
#[derive(Debug)]
pub struct Planted {
    plan: Plan,
    before: side_effects::State,
    // Held for their drops only.
    _files: files::Files,
    _process: process::Process,
    _listeners: listeners::Listeners,
    _objects: objects::Objects,
}

/// Plants everything: files, a process, listeners, shared memory, queues, a key.
///
/// What the host's kernel cannot give (a keyring, message queues) is left out of the plan, and the check of it becomes
/// inconclusive. `directories` are further directories to put a file in, beside the temporary one: those of the caller's data.
///
/// # Errors
/// When a file, the process or a listener cannot be made.
pub fn plant(directories: &[PathBuf]) -> Result<Planted, PlantError> {
    let word = random_word().map_err(plant_error("a marker"))?;
    let files = files::Files::plant(&word, directories).map_err(plant_error("a file"))?;
    let process = process::Process::plant(&word).map_err(plant_error("a process"))?;
    let listeners =
        listeners::Listeners::plant(&word, files.directory()).map_err(plant_error("a listener"))?;
    let objects = objects::Objects::plant(&word);
    let plan = Plan {
        secrets: files.secrets(),
        process: Some(process.target()),
        loopback_tcp: Some(listeners.loopback_tcp.clone()),
        loopback_udp: Some(listeners.loopback_udp.clone()),
        lan_tcp: listeners.lan_tcp.clone(),
        abstract_socket: Some(listeners.abstract_socket.clone()),
        path_socket: Some(listeners.path_socket.clone()),
        shared_memory: objects.shared_memory.clone(),
        message_queue: objects.message_queue.clone(),
        posix_queue: objects.posix_queue.clone(),
        key: objects.key.clone(),
        hostname: Some(
            rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned(),
        ),
        boot_id: side_effects::read("/proc/sys/kernel/random/boot_id"),
        footprint: Some(format!("sandyard-probe-{word}")),
        ..Plan::default()
    };
    let before = side_effects::State::take();
    Ok(Planted {
        plan,
        before,
        _files: files,
        _process: process,
        _listeners: listeners,
        _objects: objects,
    })
}

impl Planted {
    /// The plan to send a probe in with; the caller adds what it knows of sandboxes.
    #[must_use]
    pub fn plan(&self) -> Plan {
        self.plan.clone()
    }

    /// Looks whether the host is as it was before: run it when the probes are done.
    #[must_use]
    pub fn verify(&self) -> Vec<Finding> {
        side_effects::verify(&self.plan, &self.before)
    }
}

fn plant_error(what: &'static str) -> impl Fn(io::Error) -> PlantError {
    move |source| PlantError { what, source }
}

/// 32 letters that nobody has seen before.
fn random_word() -> io::Result<String> {
    let mut bytes = [0_u8; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
