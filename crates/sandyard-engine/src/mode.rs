//! The privileges of the engine, and what follows from them.

use serde::{Deserialize, Serialize};

const NO_DISK_LIMIT: &str = "no hard disk limit: what it wrote is measured every few seconds, and the host's free space is guarded";

/// How the engine's sandboxes get their user ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "mode")]
pub enum Mode {
    /// Root: each sandbox has its own range of 65,536 ids, and id-mapped mounts shift file owners.
    Root,
    /// An ordinary user with subordinate ids: the launcher is root of a user namespace with these ids, and all sandboxes share them.
    Subordinate {
        /// The user.
        uid: u32,
        /// Its group.
        gid: u32,
    },
    /// An ordinary user: root inside is that user outside, and there is no second id.
    Rootless {
        /// The user.
        uid: u32,
        /// Its group.
        gid: u32,
    },
}

impl Mode {
    /// The mode of the current user, without regard to subordinate ids.
    pub fn detect() -> Self {
        let uid = rustix::process::geteuid();
        if uid.is_root() {
            return Self::Root;
        }
        Self::Rootless {
            uid: uid.as_raw(),
            gid: rustix::process::getegid().as_raw(),
        }
    }

    /// Says whether there is more than one user id inside.
    pub fn has_many_ids(self) -> bool {
        !matches!(self, Self::Rootless { .. })
    }

    /// What this mode cannot give, as sentences for the user.
    pub(crate) fn limitations(self) -> Vec<String> {
        match self {
            Self::Root => Vec::new(),
            Self::Subordinate { .. } => {
                vec!["one range of user ids for all of your sandboxes".to_owned(), NO_DISK_LIMIT.to_owned()]
            }
            Self::Rootless { .. } => vec![
                "one user id: `user` and `root` inside are the same, and all sandboxes share it on the host".to_owned(),
                NO_DISK_LIMIT.to_owned(),
            ],
        }
    }
}
