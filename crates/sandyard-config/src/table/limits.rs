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
          for), and how many sandboxes there may be. A default that nobody wrote down is brought down to its maximum, so on a \
          small host a sandbox gets less.",
    settings: &[
        Setting::new("limits.memory", MEMORY, "2g", "Memory of a sandbox."),
        Setting::new(
            "limits.max_memory",
            MEMORY,
            "",
            "The most memory that may be asked for.",
        )
        .otherwise("half of the host's memory; `64g` at providers that are elsewhere")
        .example("16g"),
        Setting::new("limits.cpu", CPU, "2", "Processor cores of a sandbox."),
        Setting::new(
            "limits.max_cpu",
            CPU,
            "",
            "The most cores that may be asked for.",
        )
        .otherwise("all of the host's; `64` at providers that are elsewhere")
        .example("8"),
        Setting::new(
            "limits.pids",
            PIDS,
            "1024",
            "Processes and threads of a sandbox.",
        ),
        Setting::new(
            "limits.max_pids",
            PIDS,
            "",
            "The most processes and threads that may be asked for.",
        )
        .otherwise("a quarter of the host's `kernel.pid_max` and `kernel.threads-max`; `65536` at providers that are elsewhere")
        .example("4096"),
        Setting::new(
            "limits.disk",
            DISK,
            "4g",
            "What a sandbox may write on top of its template. Used only as it is written.",
        ),
        Setting::new(
            "limits.max_disk",
            DISK,
            "",
            "The most disk that may be asked for.",
        )
        .otherwise("half of the file system with `data_dir`; `256g` at providers that are elsewhere")
        .example("64g"),
        Setting::new(
            "limits.memory_reserve",
            Kind::Size(0, 1 << 50),
            "",
            "Memory to keep free for this host: while less is available, no sandbox is made or started.",
        )
        .otherwise("3 % of the host's memory, at least `256m`")
        .example("1g"),
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
