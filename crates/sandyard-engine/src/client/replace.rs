//! Ending a launcher that is not the one this process would start. Sandboxes go on without it, and the next one has them all.

use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use super::{Engine, EngineConfig};
use crate::error::{EngineError, Result};
use crate::identity::{self, VERSION};
use crate::protocol::{GENERATION, Hello};
use crate::sys::process::{ProcessKey, wait_gone};

/// How long a launcher may take to end; it looks up four times a second, unless the host is very busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// Says what of a running launcher is not as this configuration has it; `None`: nothing.
pub(super) fn difference(config: &EngineConfig, hello: &Hello) -> Option<String> {
    if hello.generation != GENERATION || hello.version != VERSION {
        return Some(format!("it is of version {}", hello.version));
    }
    if config.tools_port.is_some() && hello.tools_port != config.tools_port {
        return Some("its sandboxes have their tool server elsewhere".to_owned());
    }
    if hello.memory_reserve != config.memory_reserve {
        return Some("it keeps another amount of memory free".to_owned());
    }
    let program = config.launcher.as_ref()?.first()?;
    let wanted = identity::of_program(Path::new(program));
    let is_other = !wanted.is_empty() && !hello.program.is_empty() && wanted != hello.program;
    is_other.then(|| "it is of another build".to_owned())
}

impl Engine {
    /// Ends the running launcher and starts one of ours, once: whoever else has this data directory may want another one, and
    /// two that end each other's for ever would serve nobody. Returns who serves now.
    pub(super) async fn replace(&self, old: Hello, why: &str) -> Result<Hello> {
        match self.end(&old).await {
            Ok(true) => {}
            Ok(false) => {
                tracing::warn!(
                    process = old.launcher_pid,
                    "the running launcher stays although {why}: it does not end"
                );
                return Ok(old);
            }
            Err(error) => {
                tracing::warn!(process = old.launcher_pid, %error, "the running launcher stays although {why}");
                return Ok(old);
            }
        }
        self.idle().clear();
        let new = self.hello().await?;
        match difference(&self.shared.config, &new) {
            None => tracing::info!(
                process = new.launcher_pid,
                "a new launcher has taken over: of the one before, {why}"
            ),
            Some(why) => tracing::warn!(
                process = new.launcher_pid,
                "another server of this data directory started its launcher first, and {why}: end that server, then start this again"
            ),
        }
        Ok(new)
    }

    /// Has a launcher end by itself: what it does for others is finished by processes of their own. Says whether it is gone.
    async fn end(&self, old: &Hello) -> Result<bool> {
        let failed =
            |error: std::io::Error| EngineError::failed("ending the running launcher", &error);
        let socket = self.shared.data.launcher_socket();
        let Ok(connection) = super::Connection::open(&socket).await else {
            return Ok(true);
        };
        // Who listens is the kernel's word. Another number than the launcher's own: it is in another pid namespace, or has been
        // followed by another one already.
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
        tokio::task::spawn_blocking(move || wait_gone(launcher, PATIENCE))
            .await
            .map_err(|error| EngineError::failed("waiting for the launcher's end", &error))?
            .map_err(failed)
    }
}
