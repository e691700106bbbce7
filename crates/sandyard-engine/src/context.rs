//! The context of every worker: built once by the launcher, inherited by its forks.

use std::path::PathBuf;
use std::time::Duration;

use sandyard_agent::Tools;
use sandyard_confine::cgroup::{self, Hierarchy};
use sandyard_confine::host::HostResources;
use sandyard_confine::seccomp::Filter;
use sandyard_core::SandboxId;
use sandyard_template::{Owners, Store};

use crate::error::{EngineError, ErrorKind, Result};
use crate::identity;
use crate::kernel::{Kernel, Linux};
use crate::launcher::LauncherConfig;
use crate::layout::{DataDir, SandboxDir};
use crate::memory_reserve::MemoryReserve;
use crate::mode::Mode;
use crate::record::Record;
use crate::runtime::{Namespaces, Runtime};
use crate::settings::Settings;
use crate::sys::OperationExt;
use crate::sys::lock::Lock;
use crate::sys::title::Title;

/// How long a request waits for another one on the same sandbox: as long as a process may take to end.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// The context of every worker.
pub(crate) struct Context {
    pub(crate) data: DataDir,
    pub(crate) kernel: Box<dyn Kernel>,
    pub(crate) runtime: &'static dyn Runtime,
    pub(crate) mode: Mode,
    pub(crate) title: Title,
    pub(crate) cgroups: Hierarchy,
    pub(crate) filter: Filter,
    pub(crate) templates: Store,
    pub(crate) settings: Settings,
    /// Decides whether the host has memory for one more sandbox.
    pub(crate) memory: MemoryReserve,
    /// The id of the data directory; empty until the launcher has its lock, and where it cannot be written.
    pub(crate) installation_id: String,
    /// Whether faults in requests are honoured.
    pub(crate) allow_faults: bool,
    /// The launcher's program file, installed as `sudo` where a template has none.
    pub(crate) program: PathBuf,
    /// Identifies the build of that program.
    pub(crate) identity: String,
    /// The tool server of every sandbox, if there is one.
    pub(crate) tools: Option<Tools>,
}

impl Context {
    /// Detects what the host has and opens the data directory.
    pub(crate) fn new(data: DataDir, mode: Mode, config: &LauncherConfig) -> Result<Self> {
        data.create()
            .operation("make data directory", data.root().display())?;
        let templates = Store::open(data.root())
            .map_err(|error| EngineError::template("opening the templates", &error))?;
        let host = HostResources::read(data.root());
        Ok(Self {
            kernel: Box::new(Linux),
            runtime: &Namespaces,
            mode,
            title: Title::find()?,
            cgroups: cgroups(&data),
            filter: Filter::compile(),
            templates,
            settings: Settings::read(&data.settings(), &host.max_limits())?,
            memory: MemoryReserve::new(&host, config.memory_reserve),
            installation_id: String::new(),
            allow_faults: config.allow_faults,
            program: config.program.clone(),
            identity: identity::of_program(&config.program),
            tools: config.tools,
            data,
        })
    }

    /// Locks a sandbox and reads its record.
    pub(crate) fn open(&self, id: &SandboxId) -> Result<OpenSandbox> {
        let locked = self.lock(id, LOCK_TIMEOUT)?.ok_or_else(|| {
            EngineError::new(ErrorKind::Busy, format!("sandbox `{id}` is busy")).hint("try again")
        })?;
        locked.open()
    }

    /// Locks a sandbox. `None`: another worker held the lock all the time.
    pub(crate) fn lock(&self, id: &SandboxId, timeout: Duration) -> Result<Option<LockedSandbox>> {
        let dir = self.data.sandbox(id);
        if !dir.root().is_dir() {
            return Err(not_found(id));
        }
        match lock(&dir, timeout) {
            Ok(lock) => Ok(lock.map(|lock| LockedSandbox {
                id: id.clone(),
                dir,
                lock,
            })),
            Err(_) if !dir.root().is_dir() => Err(not_found(id)),
            Err(error) => Err(EngineError::failed(
                format!("locking sandbox `{id}`"),
                &error,
            )),
        }
    }

    /// Whether files keep the owners that a template gives them.
    pub(crate) fn owners(&self) -> Owners {
        if self.mode.has_many_ids() {
            Owners::Keep
        } else {
            Owners::Current
        }
    }

    /// Says whether memory and processor time are limited by this host's kernel.
    pub(crate) fn can_limit(&self) -> bool {
        let support = self.cgroups.support();
        support.memory && support.cpu
    }

    /// What this host cannot give any sandbox, as sentences for the user.
    pub(crate) fn limitations(&self) -> Vec<String> {
        let mut limitations = self.mode.limitations();
        let support = self.cgroups.support();
        // Where no cgroup counts processes, a resource limit does.
        let limits = [("memory", support.memory), ("processor time", support.cpu)];
        let missing: Vec<&str> = limits
            .iter()
            .filter(|(_, can)| !can)
            .map(|(name, _)| *name)
            .collect();
        if !missing.is_empty() {
            limitations.push(format!(
                "no limit on {}: {}",
                missing.join(", "),
                support.how
            ));
        }
        limitations
    }
}

/// The cgroups of a data directory's sandboxes. Each data directory has its own parent group, so that several can share a host.
pub(crate) fn cgroups(data: &DataDir) -> Hierarchy {
    Hierarchy::detect_with(&cgroup::Settings {
        prefix: format!("sandyard-{:08x}", data.fingerprint()),
        ..cgroup::Settings::default()
    })
}

/// A sandbox that this worker has locked and not read yet.
pub(crate) struct LockedSandbox {
    id: SandboxId,
    dir: SandboxDir,
    lock: Lock,
}

impl LockedSandbox {
    /// Reads its record.
    pub(crate) fn open(self) -> Result<OpenSandbox> {
        let Self { id, dir, lock } = self;
        let record = Record::read(&dir)?.ok_or_else(|| {
            if !dir.root().is_dir() {
                // Deleted while we waited: remove the folder that taking the lock has made.
                let _ = std::fs::remove_dir_all(dir.run());
            }
            not_found(&id)
        })?;
        Ok(OpenSandbox {
            dir,
            record,
            _lock: lock,
        })
    }
}

/// A sandbox that this worker has locked and read.
pub(crate) struct OpenSandbox {
    pub(crate) dir: SandboxDir,
    pub(crate) record: Record,
    _lock: Lock,
}

fn lock(dir: &SandboxDir, timeout: Duration) -> std::io::Result<Option<Lock>> {
    let take = || {
        dir.make_run()
            .and_then(|()| Lock::take(&dir.lock(), timeout))
    };
    match take() {
        // Another worker has removed the folder in between, as `LockedSandbox::open` does.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => take(),
        other => other,
    }
}

/// The error for a sandbox that does not exist.
pub(crate) fn not_found(id: &SandboxId) -> EngineError {
    EngineError::new(ErrorKind::NotFound, format!("no sandbox `{id}`"))
        .hint("list sandboxes with `sandyard ls`")
}
