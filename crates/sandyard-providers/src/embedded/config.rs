//! Configuration of the embedded provider.

use std::path::PathBuf;

use sandyard_core::LimitPolicy;
use sandyard_engine::EngineConfig;

use crate::CallTimeouts;

/// How to reach the engine, and which sandboxes to list.
#[derive(Clone, Debug)]
pub struct EmbeddedConfig {
    /// The data directory and the launcher.
    pub engine: EngineConfig,
    /// The installation that creates sandboxes here; those of other installations on the same data directory are not listed. `None`
    /// for the data directory's own installation.
    pub installation: Option<String>,
    /// The operator's limits. Maxima that it leaves open are the engine's, which follow from the host; none exceeds what the engine
    /// accepts at all.
    pub limits: LimitPolicy,
    /// Timeouts of calls.
    pub timeouts: CallTimeouts,
}

impl EmbeddedConfig {
    /// Uses this program as launcher.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            engine: EngineConfig::new(data_dir),
            installation: None,
            limits: LimitPolicy::default(),
            timeouts: CallTimeouts::default(),
        }
    }
}
