//! The privileged process: accepts connections, forks a worker for each, reaps them, and starts background work.
//!
//! It has one thread and keeps no state of sandboxes in memory: all state is on disk, so it can be killed and started again at any
//! moment. It must stay single-threaded because its forks go on without an `exec`.

pub mod command;
mod disk_watch;
mod folder_limits;
mod sealed_program;
mod subordinate;
mod worker;

use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{WaitOptions, wait};

use sandyard_agent::Tools;

use crate::context::Context;
use crate::disk::{self, blanks};
use crate::error::{EngineError, ErrorKind, Result};
use crate::installation;
use crate::layout::DataDir;
use crate::oom;
use crate::runtime_dir;
use crate::sys::clone::{Forked, fork};
use crate::sys::lock::Lock;
use crate::sys::{OperationExt, socket, terminate};
use crate::verbs::{pool, sweep};

/// How long to wait for the lock of a launcher that has just died: its last forks close the lock first of all, which takes a
/// while on a busy host.
const LOCK_TIMEOUT: Duration = Duration::from_secs(20);
/// How often background work is considered while nothing happens.
const TICK: Duration = Duration::from_millis(250);
/// How often a sweep removes what crashes have left.
const SWEEP_INTERVAL: Duration = Duration::from_secs(30);
/// How often a pool with too few or too many spares is filled.
const FILL_INTERVAL: Duration = Duration::from_secs(1);
/// How often disks without a hard limit are measured.
const FOLDER_LIMITS_INTERVAL: Duration = Duration::from_secs(3);

/// How the launcher runs.
#[derive(Clone, Debug)]
pub struct LauncherConfig {
    /// The data directory.
    pub data_dir: PathBuf,
    /// End after this long without a connection; `None`: never.
    pub idle_exit: Option<Duration>,
    /// Honour faults that requests ask for. For tests.
    pub allow_faults: bool,
    /// The launcher's program file, installed as `sudo` where a template has none.
    pub program: PathBuf,
    /// The tool server of every sandbox, if there is one.
    pub tools: Option<Tools>,
    /// Memory to keep free for the host, in bytes; `None`: a share of the host's memory.
    pub memory_reserve: Option<u64>,
}

/// Runs the launcher until it is idle long enough, or for ever.
///
/// # Errors
/// `Conflict` when another launcher has this data directory.
pub fn run(config: &LauncherConfig) -> Result<()> {
    oom::protect_process();
    let mode = subordinate::enter_if_possible();
    let mut ctx = Context::new(DataDir::new(&config.data_dir), mode, config)?;
    let Some(lock) = take_lock(&ctx.data)? else {
        return Err(EngineError::new(
            ErrorKind::Conflict,
            "another launcher is using this data directory",
        ));
    };
    // On a full disk there is none for now. Sandboxes can be deleted all the same.
    ctx.installation_id =
        installation::read_or_make(&ctx.data.installation_id()).or_else(|error| {
            match error.kind {
                ErrorKind::Failed | ErrorKind::NoCapacity => Ok(String::new()),
                _ => Err(error),
            }
        })?;
    // So that this process reaps the first processes of all sandboxes, whichever worker made them.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .operation("become", "sub-reaper")?;
    sweep_and_wait(&ctx, &lock);
    let path = ctx.data.launcher_socket();
    let listener = socket::listen(&path).operation("listen on", path.display())?;
    listener
        .set_nonblocking(true)
        .operation("set up", path.display())?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))
        .operation("set mode of", path.display())?;
    Launcher {
        ctx,
        config,
        listener,
        _lock: lock,
        workers: Vec::new(),
        sweeper: None,
        folder_limits: None,
        disk_watch: None,
        blanks: None,
    }
    .serve();
    Ok(())
}

/// Takes the launcher's lock of this data directory. `None`: another launcher has it.
fn take_lock(data: &DataDir) -> Result<Option<Lock>> {
    let path = data.launcher_lock();
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        let lock = Lock::try_take(&path).operation("lock", path.display())?;
        let is_served = || socket::is_served(&data.launcher_socket());
        if lock.is_some() || is_served() || Instant::now() >= deadline {
            return Ok(lock);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Drop for Launcher<'_> {
    /// Removes the socket, the empty cgroup and the empty folder in memory. The lock is still held, so the next launcher has not
    /// made its own yet.
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.ctx.data.launcher_socket());
        let _ = self.ctx.cgroups.remove_parent_if_empty();
        runtime_dir::remove_if_unused(&self.ctx.data.run());
    }
}

/// The first sweep, before the first request, so that no request meets a half-made sandbox. In a fork, like all later ones: a
/// process that has read records must not become the ancestor of a sandbox.
fn sweep_and_wait(ctx: &Context, lock: &Lock) {
    match fork() {
        Ok(Forked::Child) => {
            close_in_fork(lock.as_raw_fd());
            run_and_leave(|| drop(sweep::sweep(ctx)))
        }
        Ok(Forked::Parent { pid }) => {
            let pid = rustix::process::Pid::from_raw(pid);
            let _ = rustix::process::waitpid(pid, WaitOptions::empty());
        }
        Err(_) => {}
    }
}

struct Launcher<'a> {
    ctx: Context,
    config: &'a LauncherConfig,
    listener: UnixListener,
    _lock: Lock,
    /// Processes that serve a connection.
    workers: Vec<i32>,
    /// The process that sweeps, if one runs.
    sweeper: Option<i32>,
    /// The process that measures disks which are folders, if one runs.
    folder_limits: Option<i32>,
    /// The process that watches the host's free space.
    disk_watch: Option<i32>,
    /// The process that makes empty disks, if one runs.
    blanks: Option<i32>,
}

impl Launcher<'_> {
    fn serve(&mut self) {
        terminate::catch();
        let mut idle_since = Instant::now();
        let mut swept = Instant::now();
        let mut measured = Instant::now();
        loop {
            let ready = self.wait_for_connection();
            if terminate::is_requested() {
                return;
            }
            self.reap();
            if ready {
                while let Ok((stream, _)) = self.listener.accept() {
                    self.start_worker(stream);
                }
            }
            if !self.workers.is_empty() {
                idle_since = Instant::now();
            }
            if self.folder_limits.is_none() {
                self.start_folder_limits(&mut measured);
            }
            if self.disk_watch.is_none() {
                let launcher = rustix::process::getpid();
                self.disk_watch = start_fork(self, |own| disk_watch::watch(&own.ctx, launcher));
            }
            // When a user logs out, systemd can remove the folder in memory.
            if !self.ctx.data.id_ranges().is_dir() {
                let _ = self.ctx.data.create();
            }
            if self.blanks.is_none()
                && blanks::needs_refill(&self.ctx.data.blanks())
                && matches!(disk::is_nearly_full(&self.ctx.data), Ok(false))
            {
                self.blanks = start_fork(self, |launcher| {
                    let lock = Lock::try_take(&launcher.ctx.data.blanks_lock());
                    // The process of an earlier launcher may still be making them.
                    if let Ok(Some(_lock)) = lock {
                        let _ = blanks::refill(&launcher.ctx.data.blanks());
                    }
                });
            }
            let due = swept.elapsed() >= SWEEP_INTERVAL
                || (swept.elapsed() >= FILL_INTERVAL && pool::needs_filling(&self.ctx));
            if due && self.sweeper.is_none() {
                swept = Instant::now();
                self.start_sweeper();
            }
            let idle_exit = self.config.idle_exit;
            if idle_exit.is_some_and(|limit| idle_since.elapsed() >= limit) && !self.is_needed() {
                return;
            }
        }
    }

    fn wait_for_connection(&self) -> bool {
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: TICK.subsec_nanos().into(),
        };
        let mut fds = [PollFd::from_borrowed_fd(
            self.listener.as_fd(),
            PollFlags::IN,
        )];
        matches!(poll(&mut fds, Some(&timeout)), Ok(count) if count > 0)
    }

    fn reap(&mut self) {
        while let Ok(Some((pid, _))) = wait(WaitOptions::NOHANG) {
            let pid = pid.as_raw_nonzero().get();
            self.workers.retain(|worker| *worker != pid);
            self.sweeper = self.sweeper.filter(|child| *child != pid);
            self.folder_limits = self.folder_limits.filter(|child| *child != pid);
            self.disk_watch = self.disk_watch.filter(|child| *child != pid);
            self.blanks = self.blanks.filter(|child| *child != pid);
        }
    }

    fn start_worker(&mut self, stream: UnixStream) {
        // `None`: out of processes or memory. The client sees the connection close and may try again.
        self.workers.extend(start_fork(self, |launcher| {
            worker::serve(&launcher.ctx, stream)
        }));
    }

    fn start_folder_limits(&mut self, measured: &mut Instant) {
        if measured.elapsed() >= FOLDER_LIMITS_INTERVAL && folder_limits::is_needed(&self.ctx) {
            *measured = Instant::now();
            self.folder_limits =
                start_fork(self, |launcher| folder_limits::check_limits(&launcher.ctx));
        }
    }

    fn start_sweeper(&mut self) {
        self.sweeper = start_fork(self, |launcher| {
            // In two processes: a sweep reads every record with its secrets, and the process that fills the pool becomes the
            // first process of other sandboxes.
            if let Ok(Forked::Child) = fork() {
                run_and_leave(|| drop(pool::fill(&launcher.ctx)));
            }
            let _ = sweep::sweep(&launcher.ctx);
        });
    }

    /// Closes, in a fork, the listener and the lock: they must end with the launcher, and the fork may outlive it.
    fn close_own_descriptors(&self) {
        close_in_fork(self.listener.as_raw_fd());
        close_in_fork(self._lock.as_raw_fd());
    }

    /// Says whether something must be watched or made.
    fn is_needed(&self) -> bool {
        folder_limits::is_needed(&self.ctx)
            || disk_watch::has_images(&self.ctx)
            || !pool::settings(&self.ctx).is_empty()
            || pool::needs_filling(&self.ctx)
    }
}

/// Does `work` in a fork. Returns its process id.
fn start_fork<'a>(launcher: &Launcher<'a>, work: impl FnOnce(&Launcher<'a>)) -> Option<i32> {
    match fork() {
        Ok(Forked::Parent { pid }) => Some(pid),
        Ok(Forked::Child) => {
            terminate::restore();
            launcher.close_own_descriptors();
            run_and_leave(|| work(launcher));
        }
        Err(_) => None,
    }
}

/// Closes a descriptor of the launcher's in a fork.
fn close_in_fork(fd: RawFd) {
    // SAFETY: this fork never returns to the code that owns the descriptor; it ends in `run_and_leave`.
    unsafe { libc::close(fd) };
}

/// Does a fork's work and ends it. A panic must not unwind into the launcher's frames, whose values are not the fork's.
fn run_and_leave(work: impl FnOnce()) -> ! {
    run_and_report(|| {
        work();
        true
    })
}

/// The same for work that may fail; then the exit status is 1.
fn run_and_report(work: impl FnOnce() -> bool) -> ! {
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    let code = i32::from(!matches!(outcome, Ok(true)));
    // SAFETY: ends this fork at once; exit handlers and destructors belong to the launcher.
    unsafe { libc::_exit(code) }
}

/// Says whether an error means that another launcher uses the data directory.
pub fn is_taken(error: &EngineError) -> bool {
    error.kind == ErrorKind::Conflict
}
