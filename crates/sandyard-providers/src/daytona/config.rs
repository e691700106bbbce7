//! What the Daytona provider is told.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use sandyard_core::Limits;

use crate::CallTimeouts;

/// Everything the Daytona provider needs to know.
#[derive(Clone)]
pub struct DaytonaConfig {
    /// The key. It never leaves this process but to the API.
    pub api_key: String,
    /// Where the API is: `https://app.daytona.io/api`.
    pub server_url: String,
    /// The region; none: the account's default.
    pub target: Option<String>,
    /// The snapshot a sandbox starts from when nothing is named; none: Daytona's default.
    pub snapshot: Option<String>,
    /// A certificate to trust besides the system's, in PEM.
    pub trusted_ca: Option<String>,
    /// The installation whose sandboxes are ours.
    pub installation: String,
    /// The program put into every sandbox and run there as its agent: this one, or one with its role `agent`.
    pub program: PathBuf,
    /// Where users find the tool server of a sandbox, which is the same program's.
    pub tools_port: u16,
    /// After how long without use a sandbox is stopped there, or paused where that is possible, should this server be gone.
    pub auto_stop: Duration,
    /// After how long a stopped sandbox is archived there: its files are kept where they cost less, and it takes longer to start.
    pub auto_archive: Duration,
    /// The default limits and the most a caller may ask for.
    pub limits: (Limits, Limits),
    /// How long calls may take.
    pub timeouts: CallTimeouts,
}

impl fmt::Debug for DaytonaConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DaytonaConfig")
            .field("server_url", &self.server_url)
            .field("target", &self.target)
            .field("snapshot", &self.snapshot)
            .field("installation", &self.installation)
            .finish_non_exhaustive()
    }
}
