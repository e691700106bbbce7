//! What one process inside may use, beside what its group may.

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// A ceiling for one resource and why it is there.
struct Ceiling {
    resource: Resource,
    most: u64,
    /// Try to go up to the ceiling, not only down.
    raise: bool,
}

/// The ceilings. What is not here (processes, memory, file size) is held by the group and the disk limit.
const CEILINGS: &[Ceiling] = &[
    // Databases, node and browsers want many; the kernel's own cap on most hosts.
    ceiling(Resource::Nofile, 1 << 20, true),
    // A dump would be written where the host's core_pattern says, maybe by a host program. The kernel starts no such program
    // for a limit of exactly 1, and does for 0 (core(5)).
    ceiling(Resource::Core, 1, false),
    // Enough for gpg, browsers and the like; locked memory cannot be taken back by the kernel.
    ceiling(Resource::Memlock, 8 << 20, false),
    // POSIX queues live in kernel memory: the kernel's usual default.
    ceiling(Resource::Msgqueue, 819_200, false),
    // No priority above the host's own programs.
    ceiling(Resource::Nice, 0, false),
    // No real-time scheduling: it would starve the host.
    ceiling(Resource::Rtprio, 0, false),
    // Queued signals and timers live in kernel memory, and count against the user who started it all.
    ceiling(Resource::Sigpending, 2048, false),
];

const fn ceiling(resource: Resource, most: u64, raise: bool) -> Ceiling {
    Ceiling {
        resource,
        most,
        raise,
    }
}

/// Says that a limit could not be lowered, which the kernel never refuses unless a filter stands in the way.
#[derive(Debug, thiserror::Error)]
#[error("failed to set the limit {resource:?} to {most}")]
pub struct RlimitError {
    resource: Resource,
    most: u64,
    #[source]
    source: std::io::Error,
}

/// Sets the limits of this process and all it starts. Where the host forbids raising one, it stays as high as it is.
pub fn apply() -> Result<(), RlimitError> {
    CEILINGS.iter().try_for_each(|ceiling| {
        set(ceiling).map_err(|errno| RlimitError {
            resource: ceiling.resource,
            most: ceiling.most,
            source: errno.into(),
        })
    })
}

fn set(ceiling: &Ceiling) -> Result<(), Errno> {
    let now = getrlimit(ceiling.resource);
    let both = |value: u64| Rlimit {
        current: Some(value),
        maximum: Some(value),
    };
    // No number is no limit.
    let allowed = now.maximum.unwrap_or(u64::MAX).min(ceiling.most);
    if ceiling.raise && setrlimit(ceiling.resource, both(ceiling.most)).is_ok() {
        return Ok(());
    }
    setrlimit(ceiling.resource, both(allowed))
}
