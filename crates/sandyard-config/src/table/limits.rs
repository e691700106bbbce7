//! `[limits]`: resource limits and numbers of sandboxes.

use sandyard_core::Limits;

use crate::kind::Kind;
use crate::setting::{Section, Setting};

const MEMORY: Kind = Kind::Size(Limits::LEAST.memory_bytes, 1 << 50);
const DISK: Kind = Kind::Size(Limits::LEAST.disk_bytes, 1 << 50);
const CPU: Kind = Kind::Cores(Limits::LEAST.cpu_millis as u64, 4_000_000);
const PIDS: Kind = Kind::Integer(Limits::LEAST.pids as u64, 4_194_304);

pub(super) const SECTION: Section = Section {
    name: "limits",
    doc: "Resource limits of one sandbox (the default, and the maximum that a request may set), and the maximum number of \
          sandboxes. A default that is not set explicitly is lowered to its maximum, so on a small host a sandbox gets less.",
    settings: &[
        Setting::new("limits.memory", MEMORY)
            .default("2g")
            .doc("Default memory of a sandbox, at least 16m."),
        Setting::new("limits.max_memory", MEMORY)
            .doc("Maximum memory that a request may set.")
            .when_unset("half of the host's memory; `64g` for remote providers")
            .example("16g"),
        Setting::new("limits.cpu", CPU)
            .default("2")
            .doc("Default number of processor cores of a sandbox, at least 0.01."),
        Setting::new("limits.max_cpu", CPU)
            .doc("Maximum number of cores that a request may set.")
            .when_unset("all cores of the host; `64` for remote providers")
            .example("8"),
        Setting::new("limits.pids", PIDS)
            .default("1024")
            .doc("Default maximum number of processes and threads of a sandbox."),
        Setting::new("limits.max_pids", PIDS)
            .doc("Maximum number of processes and threads that a request may set.")
            .when_unset("a quarter of the host's `kernel.pid_max` and `kernel.threads-max`; `65536` for remote providers")
            .example("4096"),
        Setting::new("limits.disk", DISK)
            .default("4g")
            .doc("Default disk space that a sandbox may write in addition to its template, at least 16m. Space is used only when it is written."),
        Setting::new("limits.max_disk", DISK)
            .doc("Maximum disk space that a request may set.")
            .when_unset("half of the file system of `data_dir`; `256g` for remote providers")
            .example("64g"),
        Setting::new("limits.memory_reserve", Kind::Size(0, 1 << 50))
            .doc("Memory to keep free on this host. While less is available, no sandbox is created or started.")
            .when_unset("3 % of the host's memory, at least `256m`")
            .example("1g"),
        Setting::new("limits.sandboxes_per_user", Kind::Integer(0, 1_000_000))
            .default("100")
            .doc("Maximum number of sandboxes of one user, including paused ones. 0 means no limit."),
        Setting::new("limits.sandboxes", Kind::Integer(0, 1_000_000))
            .default("0")
            .doc("Maximum number of sandboxes of this installation. 0 means no limit."),
    ],
};
