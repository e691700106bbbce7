//! A kernel for tests that run as an ordinary user.
//!
//! It records every call and fails the chosen ones. A cgroup is a name in a set, a loop device an open image, a mount an open
//! folder, and a first process a real child that does nothing: what is left of any of them can be listed.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::ops::RangeFrom;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::mount::MountAttrFlags;
use rustix::process::{Pid, PidfdFlags};
use sandyard_confine::cgroup::{Cgroup, Hierarchy};
use sandyard_core::Limits;
use tempfile::TempDir;

use super::{FirstProcess, IdMap, Kernel};
use crate::error::{EngineError, Result};
use crate::init::{GO, InitReport};
use crate::sys::clone::Cloned;
use crate::sys::loopdev::LoopDevice;
use crate::sys::{OperationExt, SysResult, process, socket};

/// Loop device numbers that no host has.
const FIRST_LOOP: u32 = 1_000_000;

/// The fake. Its clones share one state, so a test keeps one and gives the other to a `Context`.
#[derive(Clone, Debug)]
pub(crate) struct FakeKernel {
    state: Rc<RefCell<State>>,
}

#[derive(Debug)]
struct State {
    /// The calls made since the last [`FakeKernel::fail`], in order.
    calls: Vec<&'static str>,
    failing: Failing,
    cgroups: BTreeSet<String>,
    processes: Vec<Process>,
    /// One folder for every loop device: what is mounted from it.
    mounts: TempDir,
    next_loop: u32,
}

/// Which calls fail, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failing {
    /// No call fails.
    Never,
    /// The nth one.
    Nth(usize),
    /// The first of these, and all after it.
    From(RangeFrom<usize>),
}

/// A first process, which ends when its worker goes away before it is released.
#[derive(Debug)]
struct Process {
    child: Child,
    cgroup: String,
    /// Its end of the handshake, until it is released.
    worker: Option<OwnedFd>,
    _listener: OwnedFd,
    mounts: Vec<OwnedFd>,
}

impl FakeKernel {
    pub(crate) fn new() -> Self {
        let state = State {
            calls: Vec::new(),
            failing: Failing::Never,
            cgroups: BTreeSet::new(),
            processes: Vec::new(),
            mounts: tempfile::tempdir().expect("a folder"),
            next_loop: FIRST_LOOP,
        };
        Self {
            state: Rc::new(RefCell::new(state)),
        }
    }

    /// Forgets the calls so far, and fails these of the next ones.
    pub(crate) fn fail(&self, failing: Failing) {
        let mut state = self.state.borrow_mut();
        state.calls.clear();
        state.failing = failing;
    }

    /// The calls made since the last [`FakeKernel::fail`].
    pub(crate) fn calls(&self) -> Vec<&'static str> {
        self.state.borrow().calls.clone()
    }

    /// What exists in this kernel: cgroups, processes, and what of `data` or of its own mounts is held open.
    pub(crate) fn objects(&self, data: &Path) -> Vec<String> {
        let mut state = self.state.borrow_mut();
        state.settle();
        let cgroups = state.cgroups.iter().map(|name| format!("cgroup {name}"));
        let processes = state.processes.iter();
        let processes = processes.map(|process| format!("process {}", process.child.id()));
        let mut objects: Vec<String> = cgroups.chain(processes).collect();
        for entry in fs::read_dir("/proc/self/fd").expect("list").flatten() {
            let target = fs::read_link(entry.path()).unwrap_or_default();
            if target.starts_with(data) || target.starts_with(state.mounts.path()) {
                objects.push(format!("open {}", target.display()));
            }
        }
        objects
    }

    /// Records a call and fails it if it is due.
    fn call(&self, name: &'static str) -> io::Result<()> {
        let mut state = self.state.borrow_mut();
        state.settle();
        state.calls.push(name);
        let number = state.calls.len();
        let is_due = match &state.failing {
            Failing::Never => false,
            Failing::Nth(nth) => *nth == number,
            Failing::From(range) => range.contains(&number),
        };
        match is_due {
            true => Err(io::Error::from_raw_os_error(libc::EPERM)),
            false => Ok(()),
        }
    }

    fn call_for<T>(&self, name: &'static str, value: impl FnOnce() -> T) -> SysResult<T> {
        self.call(name).operation(name, "the fake kernel")?;
        Ok(value())
    }

    fn mount_folder(&self, number: u32) -> PathBuf {
        let state = self.state.borrow();
        state.mounts.path().join(number.to_string())
    }
}

impl State {
    /// Brings every process up to date with what its worker did, and forgets those that have ended.
    fn settle(&mut self) {
        for process in &mut self.processes {
            process.read_messages();
        }
        self.processes.retain_mut(|process| {
            let ended = process.child.try_wait().expect("it is our child");
            ended.is_none()
        });
    }

    fn kill_cgroup(&mut self, name: &str) {
        for process in &mut self.processes {
            if process.cgroup == name {
                process.kill();
            }
        }
        self.settle();
    }
}

impl Process {
    fn read_messages(&mut self) {
        while let Some(worker) = &self.worker {
            match socket::receive(worker) {
                Ok((message, _)) if message == GO => self.worker = None,
                Ok((message, _)) if message.is_empty() => {
                    self.worker = None;
                    self.kill();
                }
                Ok((_, mounts)) => self.mounts.extend(mounts),
                Err(_) => return,
            }
        }
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn open_folder(path: &Path) -> OwnedFd {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).expect("the folder exists")
}

impl Kernel for FakeKernel {
    fn create_cgroup(&self, cgroups: &Hierarchy, name: &str, limits: &Limits) -> Result<Cgroup> {
        self.call_for("create cgroup", || ())?;
        self.state.borrow_mut().cgroups.insert(name.to_owned());
        Ok(cgroups.create(name, limits).expect("it has no files"))
    }

    fn kill_cgroup(&self, _: &Hierarchy, name: &str) {
        if self.call("kill cgroup").is_ok() {
            self.state.borrow_mut().kill_cgroup(name);
        }
    }

    fn remove_cgroup(&self, _: &Hierarchy, name: &str, _: Duration) -> Result<()> {
        self.call_for("remove cgroup", || ())?;
        let mut state = self.state.borrow_mut();
        state.kill_cgroup(name);
        state.cgroups.remove(name);
        Ok(())
    }

    fn cgroup_names(&self, _: &Hierarchy) -> Result<Vec<String>> {
        self.call_for("list cgroups", || ())?;
        Ok(self.state.borrow().cgroups.iter().cloned().collect())
    }

    fn clone_first_process(&self, first: FirstProcess<'_>) -> Result<Cloned> {
        self.call_for("clone", || ())?;
        let report = InitReport::Ready {
            limitations: Vec::new(),
        };
        let report = serde_json::to_vec(&report).expect("plain JSON");
        socket::send(&first.worker, &report, &[]).expect("the worker listens");
        rustix::io::ioctl_fionbio(&first.worker, true).expect("a socket");
        let child = Command::new("sleep")
            .arg("600")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| EngineError::failed("starting sleep", &error))?;
        let pid = child.id() as i32;
        let pidfd = Pid::from_raw(pid).expect("a child's number");
        let pidfd = rustix::process::pidfd_open(pidfd, PidfdFlags::empty()).expect("our child");
        self.state.borrow_mut().processes.push(Process {
            child,
            cgroup: first.cgroup.name().to_owned(),
            worker: Some(first.worker),
            _listener: first.listener,
            mounts: Vec::new(),
        });
        Ok(Cloned { pid, pidfd })
    }

    fn join_cgroup(&self, _: &Cgroup, _: i32) -> Result<()> {
        Ok(self.call_for("join cgroup", || ())?)
    }

    fn map_ids(&self, _: i32, _: IdMap) -> SysResult<()> {
        self.call_for("map ids", || ())
    }

    fn user_namespace(&self, _: i32) -> SysResult<OwnedFd> {
        self.call_for("open user namespace", || open_folder(Path::new("/")))
    }

    fn shift_owners(&self, _: &OwnedFd, _: &OwnedFd) -> SysResult<()> {
        self.call_for("shift owners", || ())
    }

    fn clone_shifted(&self, folder: &Path, _: &OwnedFd) -> SysResult<OwnedFd> {
        self.call_for("clone mount", || open_folder(folder))
    }

    fn attach_loop(&self, image: &Path) -> SysResult<LoopDevice> {
        self.call("attach loop")
            .operation("attach", image.display())?;
        let device = File::options().read(true).write(true).open(image);
        let device = device.operation("open", image.display())?;
        let number = {
            let mut state = self.state.borrow_mut();
            state.next_loop += 1;
            state.next_loop
        };
        let folder = self.mount_folder(number);
        fs::create_dir(&folder).operation("make", folder.display())?;
        Ok(LoopDevice::new(device, number))
    }

    /// Never finds one: a loop device goes with its last user, and no two sandboxes of a test share an image.
    fn reopen_loop(&self, _: u32, _: &Path) -> io::Result<Option<LoopDevice>> {
        self.call("reopen loop").map(|()| None)
    }

    fn mount_ext4(&self, device: &LoopDevice, _: MountAttrFlags) -> SysResult<OwnedFd> {
        let folder = self.mount_folder(device.number);
        self.call_for("mount ext4", || open_folder(&folder))
    }

    fn kill(&self, pidfd: &OwnedFd, timeout: Duration) -> io::Result<bool> {
        self.call("kill")?;
        let killed = process::kill_and_wait(pidfd, timeout);
        self.state.borrow_mut().settle();
        killed
    }

    fn run_in_background(&self, work: &dyn Fn()) {
        if self.call("run in background").is_ok() {
            work();
        }
    }
}
