//! How long calls may take before they count as failed.

use std::time::Duration;

use sandyard_provider::Verb;

/// How long calls may take, by how much work they are.
#[derive(Clone, Copy, Debug)]
pub struct CallTimeouts {
    /// Connecting, which may have to start the provider's process and repair what a crash left behind.
    pub connect: Duration,
    /// Creating and starting; many at once wait for each other.
    pub create: Duration,
    /// Calls that move no files. The engine waits up to ten seconds for a lock on the sandbox.
    pub quick: Duration,
    /// After how long without use a volume helper is removed.
    pub keep: Duration,
    /// Calls that copy or compare files: snapshot, fork, diff, import, filling the pool.
    pub copy: Duration,
}

impl Default for CallTimeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(45),
            create: Duration::from_secs(60),
            quick: Duration::from_secs(30),
            keep: Duration::from_secs(60),
            copy: Duration::from_secs(30 * 60),
        }
    }
}

impl CallTimeouts {
    /// The timeout of one call.
    pub fn of(&self, verb: Verb) -> Duration {
        match verb {
            Verb::CheckHealth => self.connect,
            Verb::Create | Verb::Start | Verb::CreateVolume | Verb::OpenVolume => self.create,
            Verb::Snapshot | Verb::Fork | Verb::Diff | Verb::ImportTemplate | Verb::KeepReady => {
                self.copy
            }
            _ => self.quick,
        }
    }

    /// The same with `grace` added, for calls to a server that applies these timeouts itself.
    #[must_use]
    pub fn plus(self, grace: Duration) -> Self {
        Self {
            connect: self.connect + grace,
            create: self.create + grace,
            quick: self.quick + grace,
            copy: self.copy + grace,
            keep: self.keep,
        }
    }
}
