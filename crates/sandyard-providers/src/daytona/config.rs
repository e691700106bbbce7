//! Configuration of the Daytona provider.

use std::path::PathBuf;
use std::time::Duration;

use sandyard_core::Limits;

use crate::CallTimeouts;

/// Everything the Daytona provider needs to know.
#[derive(Clone)]
pub struct DaytonaConfig {
    /// The API key. It is sent to the API only.
    pub api_key: String,
    /// Address of the API: `https://app.daytona.io/api`.
    pub server_url: String,
    /// The region; `None` for the account's default.
    pub target: Option<String>,
    /// The snapshot of a sandbox whose create request names none; `None` for Daytona's default.
    pub snapshot: Option<String>,
    /// A certificate to trust besides the system's, in PEM.
    pub trusted_ca: Option<String>,
    /// The installation whose sandboxes the provider lists.
    pub installation: String,
    /// The program that is sent to every sandbox and runs there as its agent: this program, or one that is only an agent.
    pub program: PathBuf,
    /// Port on which users reach the tool server of a sandbox.
    pub tools_port: u16,
    /// Idle time after which Daytona stops or pauses a sandbox when this server is down.
    pub auto_stop: Duration,
    /// Time after which Daytona archives a stopped sandbox: its files cost less, and it takes longer to start.
    pub auto_archive: Duration,
    /// The default limits, and the largest limits that a caller may request.
    pub limits: (Limits, Limits),
    /// Timeouts of calls.
    pub timeouts: CallTimeouts,
}

sandyard_core::debug_fields!(DaytonaConfig: server_url, target, snapshot, installation);
