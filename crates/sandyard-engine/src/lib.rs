//! Namespaces, mounts and the launcher: the kernel work behind a sandbox.
//!
//! Split by which process runs the code:
//!
//! | process        | modules                                             |
//! |----------------|-----------------------------------------------------|
//! | any, async     | [`client`]: [`Engine`], what the rest of Sandyard uses |
//! | launcher       | [`launcher`]                                        |
//! | worker         | `launcher/worker`, `verbs/*` (one verb a file), `boot`, `runtime` |
//! | first process  | `init/*`, then the agent                            |
//! | in a container | [`contained`]: the first process of one that another engine made |
//!
//! What they share: [`SandboxSpec`] and [`SandboxInfo`] (`spec`), `protocol`, what is on disk (`layout`, `record`, `disk`,
//! `id_range`, `volume`), `trust` (the gateway's certificate on top of templates), `steps` (steps with undo, failures on demand), `kernel`
//! (the privileged calls of the verbs behind one trait, with a fake for tests) and `sys` (all system calls).
//!
//! This crate knows nothing of HTTP, SQL, tenants or timers.

mod boot;
mod boot_id;
pub mod client;
mod clock;
pub mod contained;
mod context;
mod disk;
mod error;
mod frame;
mod id_range;
mod identity;
mod init;
mod installation;
mod kernel;
pub mod launcher;
mod layout;
mod memory_reserve;
mod mode;
mod oom;
mod protocol;
mod random;
mod record;
mod runtime;
mod runtime_dir;
mod settings;
mod spec;
mod steps;
pub mod sudo;
mod sys;
mod trust;
mod verbs;
mod volume;

pub use client::{Engine, EngineConfig, Lease, Sample, Sampler};
pub use error::{EngineError, ErrorKind, Result};
pub use layout::DataDir;
pub use mode::Mode;
pub use oom::protect_process;
pub use protocol::{Hello, PoolSpec};
pub use spec::{DEFAULT_TEMPLATE, ForkSpec, MountSpec, SandboxInfo, SandboxSpec, SandboxStats};
pub use steps::{Fault, FaultAction, FaultProcess};
pub use sys::SysError;
pub use sys::process::ProcessKey;

pub use sandyard_template::{Change, ChangeKind, Diff, Kind as TemplateKind, Template};
