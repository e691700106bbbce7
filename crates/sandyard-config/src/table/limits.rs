//! `[limits]`: how much a sandbox may use, and how many there may be.

use sandyard_core::Limits;

use crate::kind::Kind;
use crate::setting::{Section, Setting};

const MEMORY: Kind = Kind::Size(Limits::LEAST.memory_bytes, 1 << 50);
const DISK: Kind = Kind::Size(Limits::LEAST.disk_bytes, 1 << 50);
const CPU: Kind = Kind::Cores(Limits::LEAST.cpu_millis as u64, 4_000_000);
const PIDS: Kind = Kind::Whole(Limits::LEAST.pids as u64, 4_194_304);

pub(super) const SECTION: Section = Section {
    name: "limits",
    doc: "How much of the host one sandbox may use (what it gets when nothing is asked for, and the most that may be asked \
          for), and how many sandboxes there may be.",
    settings: &[
        Setting::new("limits.memory", MEMORY, "2g", "Memory of a sandbox."),
        Setting::new(
            "limits.max_memory",
            MEMORY,
            "64g",
            "The most memory that may be asked for.",
        ),
        Setting::new("limits.cpu", CPU, "2", "Processor cores of a sandbox."),
        Setting::new(
            "limits.max_cpu",
            CPU,
            "64",
            "The most cores that may be asked for.",
        ),
        Setting::new(
            "limits.pids",
            PIDS,
            "1024",
            "Processes and threads of a sandbox.",
        ),
        Setting::new(
            "limits.max_pids",
            PIDS,
            "65536",
            "The most processes that may be asked for.",
        ),
        Setting::new(
            "limits.disk",
            DISK,
            "4g",
            "What a sandbox may write on top of its template. Used only as it is written.",
        ),
        Setting::new(
            "limits.max_disk",
            DISK,
            "256g",
            "The most disk that may be asked for.",
        ),
        Setting::new(
            "limits.sandboxes_per_user",
            Kind::Whole(0, 1_000_000),
            "100",
            "Sandboxes one user may have, paused ones included; 0 for no bound.",
        ),
        Setting::new(
            "limits.sandboxes",
            Kind::Whole(0, 1_000_000),
            "0",
            "Sandboxes there may be in all; 0 for no bound.",
        ),
    ],
};
