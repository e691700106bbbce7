//! The fake for users' own tests: a server that needs nothing of its host and always answers the same.

use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;

use sandyard_core::Clock;

use super::FakeProvider;
use super::agent::{Inside, RulesError};

/// When time begins where it is to be the same every time: the first of January 2026.
const BEGINNING_MS: i64 = 1_767_225_600_000;

/// What the fake goes by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FakeConfig {
    /// A file that says what commands do:
    ///
    /// ```json
    /// [{"command": "^npm test$", "stdout": "ok\n", "stderr": "", "exit_code": 0, "files": {"report.txt": "fine"},
    ///   "keeps_running": false}]
    /// ```
    ///
    /// `command` is a regular expression, all else may be left out. The first that matches the whole line counts; then those
    /// that match one command of it. Paths are as the command sees them. What keeps running ends when it is killed.
    pub rules: Option<PathBuf>,
    /// Makes ids and times the same in every run; without one they are unlike those of any other run.
    pub seed: Option<u64>,
}

impl FakeProvider {
    /// A place for users' own tests: its instances have an agent, files in memory, and a shell that knows a few commands.
    ///
    /// # Errors
    /// When the rules cannot be read.
    pub fn for_users(config: &FakeConfig) -> Result<Self, RulesError> {
        let fake = Self::new();
        {
            let mut world = fake.world();
            world.inside = Some(Inside::new(config.rules.as_deref())?);
            match config.seed {
                Some(seed) => {
                    world.prefix = format!("fake{seed:x}x");
                    world.clock = Clock::manual(BEGINNING_MS);
                    world.step_ms = 1000;
                }
                // A server that begins anew must not find what it knew before under the id of something else.
                None => {
                    let random = RandomState::new().hash_one(std::process::id());
                    world.prefix = format!("fake{:08x}x", random >> 32);
                }
            }
        }
        Ok(fake)
    }
}
