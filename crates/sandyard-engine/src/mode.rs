//! With how much privilege the engine runs, and what follows.

use serde::{Deserialize, Serialize};

/// How the engine's sandboxes get their user ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "mode")]
pub enum Mode {
    /// Root: each sandbox a range of 65,536 ids of its own, owners shifted by id-mapped mounts.
    Root,
    /// An ordinary user: root inside is that user outside, and there is no second id.
    Rootless {
        /// The user.
        uid: u32,
        /// Its group.
        gid: u32,
    },
}

impl Mode {
    /// Looks at who we are.
    pub fn detect() -> Self {
        let uid = rustix::process::geteuid();
        if uid.is_root() {
            return Self::Root;
        }
        Self::Rootless { uid: uid.as_raw(), gid: rustix::process::getegid().as_raw() }
    }

    /// What this mode cannot give, in words a user understands.
    pub(crate) fn lacks(self) -> Vec<String> {
        match self {
            Self::Root => Vec::new(),
            Self::Rootless { .. } => vec![
                "one user id: `user` and `root` inside are the same, and all sandboxes share it on the host".to_owned(),
                "no hard disk limit: only the host's free space is guarded".to_owned(),
            ],
        }
    }
}
