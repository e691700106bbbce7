//! What the embedded provider is told.

use std::path::PathBuf;

use sandyard_core::LimitPolicy;
use sandyard_engine::EngineConfig;

use crate::CallTimeouts;

/// How to reach the engine, and whose sandboxes are ours.
#[derive(Clone, Debug)]
pub struct EmbeddedConfig {
    /// The data directory and the launcher.
    pub engine: EngineConfig,
    /// The installation that makes sandboxes here: those of others on the same data directory are not listed. None: that
    /// of the data directory itself.
    pub installation: Option<String>,
    /// What the operator decided about limits. Maxima that it leaves open are the engine's, which follow from the host; none goes
    /// beyond what the engine refuses to everybody.
    pub limits: LimitPolicy,
    /// How long things may take.
    pub timeouts: CallTimeouts,
}

impl EmbeddedConfig {
    /// Uses this very program as launcher.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            engine: EngineConfig::new(data_dir),
            installation: None,
            limits: LimitPolicy::default(),
            timeouts: CallTimeouts::default(),
        }
    }
}
