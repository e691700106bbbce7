//! What can go wrong with a control group.

use std::io;
use std::path::PathBuf;

/// Result of a step on a control group.
pub(crate) type Result<T, E = CgroupError> = std::result::Result<T, E>;

/// Says which step on which group failed.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    /// The name would not be one path component of lower-case letters and digits.
    #[error("`{name}` cannot name a control group: only lower-case letters and digits may")]
    Name {
        /// What was given.
        name: String,
    },
    /// No tree has a group of this name.
    #[error("there is no control group `{name}`")]
    NotFound {
        /// What was asked for.
        name: String,
    },
    /// A directory could not be made.
    #[error("failed to make the control group `{path}`")]
    Make {
        /// The group's directory.
        path: PathBuf,
        /// Why the kernel refused.
        #[source]
        source: io::Error,
    },
    /// A control file refused what was written.
    #[error("failed to write `{value}` to `{path}`")]
    Write {
        /// The control file.
        path: PathBuf,
        /// What was written.
        value: String,
        /// Why the kernel refused.
        #[source]
        source: io::Error,
    },
    /// A control file could not be read.
    #[error("failed to read `{path}`")]
    Read {
        /// The control file.
        path: PathBuf,
        /// Why the kernel refused.
        #[source]
        source: io::Error,
    },
    /// A directory could not be taken away.
    #[error("failed to remove the control group `{path}`")]
    Remove {
        /// The group's directory.
        path: PathBuf,
        /// Why the kernel refused.
        #[source]
        source: io::Error,
    },
    /// The processes did not all stop within the time given.
    #[error("the processes of the control group `{name}` did not freeze in {waited_ms} ms")]
    NotFrozen {
        /// The group.
        name: String,
        /// How long we waited.
        waited_ms: u64,
    },
    /// The processes did not all die within the time given.
    #[error("processes of the control group `{name}` are still there after {waited_ms} ms")]
    NotDead {
        /// The group.
        name: String,
        /// How long we waited.
        waited_ms: u64,
    },
    /// This host's control groups cannot do it; [`Support`](super::Support) told so beforehand.
    #[error("this host's control groups cannot {operation}")]
    Unsupported {
        /// What was asked for, as a verb.
        operation: &'static str,
    },
}

impl CgroupError {
    /// Tells whether the group was not there, which for many callers is as good as success.
    pub fn is_not_found(&self) -> bool {
        match self {
            Self::NotFound { .. } => true,
            Self::Write { source, .. } | Self::Read { source, .. } => {
                matches!(source.raw_os_error(), Some(libc::ENOENT | libc::ENODEV))
            }
            _ => false,
        }
    }

    /// Tells whether processes were still in the group, so that a later try may succeed.
    pub fn is_busy(&self) -> bool {
        match self {
            Self::NotDead { .. } => true,
            Self::Remove { source, .. } => source.raw_os_error() == Some(libc::EBUSY),
            _ => false,
        }
    }
}
