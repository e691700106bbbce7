//! What the embedded provider is told.

use std::path::PathBuf;

use sandyard_core::Limits;
use sandyard_engine::EngineConfig;

use crate::Times;

/// How to reach the engine, and whose sandboxes are ours.
#[derive(Clone, Debug)]
pub struct EmbeddedConfig {
    /// The data directory and the launcher.
    pub engine: EngineConfig,
    /// The installation that makes sandboxes here: those of others on the same data directory are not listed. None: that
    /// of the data directory itself.
    pub installation: Option<String>,
    /// What a sandbox gets when nothing is asked for, and the most that may be asked for; never beyond the engine's own.
    /// None: the engine's.
    pub limits: Option<(Limits, Limits)>,
    /// How long things may take.
    pub times: Times,
}

impl EmbeddedConfig {
    /// Uses this very program as launcher.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            engine: EngineConfig::new(data_dir),
            installation: None,
            limits: None,
            times: Times::default(),
        }
    }
}
