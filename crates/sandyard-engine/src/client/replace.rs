//! Replaces a running launcher that differs from the one this process would start. Sandboxes keep running meanwhile.

use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use super::{Engine, EngineConfig};
use crate::error::{EngineError, Result};
use crate::identity::{self, VERSION};
use crate::protocol::{GENERATION, Hello};
use crate::sys::process::{ProcessKey, wait_ended};

/// How long a launcher may take to end. It notices the signal within 250 ms, unless the host is very busy.
const TIMEOUT: Duration = Duration::from_secs(60);

/// How a running launcher differs from this configuration; `None`: not at all.
pub(super) fn difference(config: &EngineConfig, hello: &Hello) -> Option<String> {
    if hello.generation != GENERATION || hello.version != VERSION {
        return Some(format!("it has version {}", hello.version));
    }
    if config.tools_port.is_some() && hello.tools_port != config.tools_port {
        return Some("it uses another tools port".to_owned());
    }
    if hello.memory_reserve != config.memory_reserve {
        return Some("it has another memory reserve".to_owned());
    }
    let program = config.launcher.as_ref()?.first()?;
    let expected = identity::of_program(Path::new(program));
    let is_other = !expected.is_empty() && !hello.program.is_empty() && expected != hello.program;
    is_other.then(|| "it is another build".to_owned())
}

impl Engine {
    /// Ends the running launcher and starts ours. Only once: two servers on one data directory must not end each other's launcher
    /// for ever. Returns the launcher that runs now.
    pub(super) async fn replace(&self, old: Hello, reason: &str) -> Result<Hello> {
        match self.end(&old).await {
            Ok(true) => {}
            Ok(false) => {
                tracing::warn!(
                    process = old.launcher_pid,
                    "the running launcher could not be replaced although {reason}: it does not end"
                );
                return Ok(old);
            }
            Err(error) => {
                tracing::warn!(process = old.launcher_pid, %error, "the running launcher could not be replaced although {reason}");
                return Ok(old);
            }
        }
        self.idle().clear();
        let new = self.hello().await?;
        match difference(&self.shared.config, &new) {
            None => tracing::info!(
                process = new.launcher_pid,
                "replaced the running launcher because {reason}"
            ),
            Some(reason) => tracing::warn!(
                process = new.launcher_pid,
                "another server on this data directory started its own launcher, and {reason}: stop that server, then start this one again"
            ),
        }
        Ok(new)
    }

    /// Asks a launcher to end. Requests on their way finish in processes of their own. Says whether it has ended.
    async fn end(&self, old: &Hello) -> Result<bool> {
        let failed =
            |error: std::io::Error| EngineError::failed("ending the running launcher", &error);
        let socket = self.shared.data.launcher_socket();
        let Ok(connection) = super::Connection::open(&socket).await else {
            return Ok(true);
        };
        // If the kernel names another process than the launcher does, the launcher is in another pid namespace, or another one has
        // replaced it already.
        if connection.listener_pid() != Some(old.launcher_pid) {
            return Ok(false);
        }
        let Some(key) = ProcessKey::of(old.launcher_pid) else {
            return Ok(true);
        };
        let Some(launcher) = key.open().map_err(failed)? else {
            return Ok(true);
        };
        match rustix::process::pidfd_send_signal(&launcher, Signal::TERM) {
            Ok(()) => {}
            Err(rustix::io::Errno::SRCH) => return Ok(true),
            Err(error) => return Err(failed(error.into())),
        }
        tokio::task::spawn_blocking(move || wait_ended(launcher, TIMEOUT))
            .await
            .map_err(|error| EngineError::failed("waiting for the launcher to end", &error))?
            .map_err(failed)
    }
}
