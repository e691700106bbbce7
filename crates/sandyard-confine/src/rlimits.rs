//! What one process inside may use, beside what its group may.

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// A ceiling for one resource and why it is there.
struct Ceiling {
    resource: Resource,
    limit: u64,
    /// Try to go up to the ceiling, not only down.
    raise: bool,
}

/// The ceilings. What is not here (processes, memory, file size) is held by the group and the disk limit.
const CEILINGS: &[Ceiling] = &[
    // A dump would be written where the host's core_pattern says, maybe by a host program. The kernel starts no such program
    // for a limit of exactly 1, and does for 0 (core(5)).
    ceiling(Resource::Core, 1, false),
    // Enough for gpg, browsers and the like; locked memory cannot be taken back by the kernel.
    ceiling(Resource::Memlock, 8 << 20, false),
    // No priority above the host's own programs.
    ceiling(Resource::Nice, 0, false),
    // No real-time scheduling: it would starve the host.
    ceiling(Resource::Rtprio, 0, false),
];

/// Open files of one process: what node, databases and browsers ask for. The host has one number (`fs.file-max`) for all of its
/// programs, so a single process gets at most a sixteenth of that.
const MAX_OPEN_FILES: u64 = 65_536;
const FEW_OPEN_FILES: u64 = 1024;
const OPEN_FILES_SHARE: u64 = 16;

/// For whom the kernel counts what a sandbox uses, besides for the user inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accounting {
    /// For an id that only this sandbox has.
    Alone,
    /// For the user who started it all, together with that user's other sandboxes and programs.
    Together,
}

impl Accounting {
    /// POSIX queues, and queued signals with timers: both live in kernel memory.
    fn ceilings(self) -> [Ceiling; 2] {
        let (queue_bytes, signals) = match self {
            // The kernel's usual default.
            Self::Alone => (819_200, 2048),
            // One queue of the usual size, so that eight sandboxes have one each.
            Self::Together => (102_400, 256),
        };
        [
            ceiling(Resource::Msgqueue, queue_bytes, false),
            ceiling(Resource::Sigpending, signals, false),
        ]
    }
}

const fn ceiling(resource: Resource, limit: u64, raise: bool) -> Ceiling {
    Ceiling {
        resource,
        limit,
        raise,
    }
}

/// Says that a limit could not be lowered, which the kernel never refuses unless a filter stands in the way.
#[derive(Debug, thiserror::Error)]
#[error("failed to set the limit {resource:?} to {limit}")]
pub struct RlimitError {
    resource: Resource,
    limit: u64,
    #[source]
    source: std::io::Error,
}

/// Sets the limits of this process and all it starts. Where the host forbids raising one, it stays as high as it is.
pub fn apply(accounting: Accounting) -> Result<(), RlimitError> {
    let open_files = ceiling(Resource::Nofile, max_open_files(), true);
    let rest = accounting.ceilings();
    let all = CEILINGS.iter().chain(&rest).chain([&open_files]);
    all.into_iter().try_for_each(|ceiling| {
        set(ceiling).map_err(|errno| RlimitError {
            resource: ceiling.resource,
            limit: ceiling.limit,
            source: errno.into(),
        })
    })
}

fn max_open_files() -> u64 {
    let host = std::fs::read_to_string("/proc/sys/fs/file-max");
    let host: Option<u64> = host.ok().and_then(|text| text.trim().parse().ok());
    let share = host.map_or(MAX_OPEN_FILES, |limit| limit / OPEN_FILES_SHARE);
    share.clamp(FEW_OPEN_FILES, MAX_OPEN_FILES)
}

fn set(ceiling: &Ceiling) -> Result<(), Errno> {
    let now = getrlimit(ceiling.resource);
    let both = |value: u64| Rlimit {
        current: Some(value),
        maximum: Some(value),
    };
    // No number is no limit.
    let allowed = now.maximum.unwrap_or(u64::MAX).min(ceiling.limit);
    if ceiling.raise && setrlimit(ceiling.resource, both(ceiling.limit)).is_ok() {
        return Ok(());
    }
    setrlimit(ceiling.resource, both(allowed))
}
