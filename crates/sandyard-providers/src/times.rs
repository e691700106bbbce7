//! How long calls may take before they count as failed.

use std::time::Duration;

use sandyard_provider::Verb;

/// How long calls may take, by how much they have to do.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Reaching it, which may have to start and to put right what a crash left.
    pub connect: Duration,
    /// Making and starting; many at once wait for each other.
    pub create: Duration,
    /// Everything that moves no files. The engine waits up to ten seconds for whoever has the sandbox.
    pub quick: Duration,
    /// After how long without use the way to a volume's files is taken down.
    pub keep: Duration,
    /// What copies or compares files: snapshot, fork, diff, import, filling the pool.
    pub copy: Duration,
}

impl Default for Times {
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

impl Times {
    /// The time for one call.
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

    /// The same with `more` on top: for whoever asks somebody who keeps to these.
    #[must_use]
    pub fn plus(self, more: Duration) -> Self {
        Self {
            connect: self.connect + more,
            create: self.create + more,
            quick: self.quick + more,
            copy: self.copy + more,
            keep: self.keep,
        }
    }
}
