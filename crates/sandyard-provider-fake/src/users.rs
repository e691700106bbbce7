//! The fake for users' own tests: it has no requirements on the host and always gives the same answers.

use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;

use sandyard_core::Clock;

use super::FakeProvider;
use super::agent::{Agents, RulesError};

/// Start of the deterministic clock: 1 January 2026.
const START_MS: i64 = 1_767_225_600_000;

/// Settings of the fake.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FakeConfig {
    /// A file with the answers to commands:
    ///
    /// ```json
    /// [{"command": "^npm test$", "stdout": "ok\n", "stderr": "", "exit_code": 0, "files": {"report.txt": "fine"},
    ///   "keeps_running": false}]
    /// ```
    ///
    /// `command` is a regular expression; all other fields are optional. The first rule that matches the line applies, else the
    /// first for each command of the line. Paths are relative to the command's directory. A command that keeps running ends when
    /// it is killed.
    pub rules: Option<PathBuf>,
    /// Makes ids and times the same in every run. Without a seed they differ in every run.
    pub seed: Option<u64>,
}

impl FakeProvider {
    /// Creates the provider for users' own tests: its instances have agents, files in memory, and a few commands.
    ///
    /// # Errors
    /// When the rules cannot be read.
    pub fn for_users(config: &FakeConfig) -> Result<Self, RulesError> {
        let fake = Self::new();
        {
            let mut world = fake.shared.world.lock();
            world.agents = Some(Agents::new(config.rules.as_deref())?);
            match config.seed {
                Some(seed) => {
                    world.prefix = format!("fake{seed:x}x");
                    world.clock = Clock::manual(START_MS);
                    world.step_ms = 1000;
                }
                // After a restart, an id of the previous run must not name another instance.
                None => {
                    let random = RandomState::new().hash_one(std::process::id());
                    world.prefix = format!("fake{:08x}x", random >> 32);
                }
            }
        }
        Ok(fake)
    }
}
