//! The privileged process: accepts connections, forks a worker for each, reaps, and looks after the house.
//!
//! It has one thread and no memory of sandboxes: all that is known is on disk, so it can be killed and started again at any
//! moment. It must stay single-threaded because its forks go on without an `exec`.

pub mod command;
mod disk_watch;
mod guard;
mod sealed;
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
use crate::disk::{self, stock};
use crate::error::{EngineError, ErrorKind, Result};
use crate::installation;
use crate::layout::DataDir;
use crate::oom;
use crate::runtime_dir;
use crate::sys::clone::{Forked, fork};
use crate::sys::lock::Lock;
use crate::sys::{Doing, socket, terminate};
use crate::verbs::{pool, sweep};

/// How long those forks of a launcher may take that it made in the moment of its death: they give its lock up at once, but on
/// a busy host that is not so soon.
const LOCK_PATIENCE: Duration = Duration::from_secs(20);
/// How often the house is looked after while nothing happens.
const TICK: Duration = Duration::from_millis(250);
/// How often crashes' remains are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(30);
/// How often a pool that has too few or too many is seen to.
const FILL_EVERY: Duration = Duration::from_secs(1);
/// How often disks without a hard limit are measured.
const GUARD_EVERY: Duration = Duration::from_secs(3);

/// How the launcher runs.
#[derive(Clone, Debug)]
pub struct LauncherConfig {
    /// Where everything lies.
    pub data_dir: PathBuf,
    /// End after this long without a connection; never, when none is given.
    pub idle_exit: Option<Duration>,
    /// Let requests ask for failures. For tests.
    pub allow_faults: bool,
    /// The launcher's program file, installed as `sudo` where a template has none.
    pub program: PathBuf,
    /// The tool server of every sandbox; none: there is none.
    pub tools: Option<Tools>,
    /// Memory to keep free for the host, in bytes; none: a share of the host's memory.
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
            "another launcher has this data directory",
        ));
    };
    // On a full disk there is none for now: that must not keep anybody from deleting sandboxes.
    ctx.installation_id =
        installation::read_or_make(&ctx.data.installation_id()).or_else(|error| {
            match error.kind {
                ErrorKind::Failed | ErrorKind::NoCapacity => Ok(String::new()),
                _ => Err(error),
            }
        })?;
    // So that sandboxes' first processes come back to us to be reaped, whichever worker made them.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .doing("become", "sub-reaper")?;
    sweep_and_wait(&ctx, &lock);
    let path = ctx.data.launcher_socket();
    let listener = socket::listen(&path).doing("listen on", path.display())?;
    listener
        .set_nonblocking(true)
        .doing("set up", path.display())?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))
        .doing("set mode of", path.display())?;
    Launcher {
        ctx,
        config,
        listener,
        _lock: lock,
        workers: Vec::new(),
        sweeper: None,
        guard: None,
        disk_watch: None,
        stocker: None,
    }
    .serve();
    Ok(())
}

/// Takes the lock of this data directory's launcher. `None`: another one has it.
fn take_lock(data: &DataDir) -> Result<Option<Lock>> {
    let path = data.launcher_lock();
    let give_up = Instant::now() + LOCK_PATIENCE;
    loop {
        let lock = Lock::try_take(&path).doing("lock", path.display())?;
        let is_served = || socket::is_served(&data.launcher_socket());
        if lock.is_some() || is_served() || Instant::now() >= give_up {
            return Ok(lock);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Drop for Launcher<'_> {
    /// Leaves no socket, no empty group and no empty folder in memory behind, while the lock still keeps the next launcher from
    /// making its own.
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.ctx.data.launcher_socket());
        let _ = self.ctx.cgroups.remove_parent_if_empty();
        runtime_dir::remove_if_unused(&self.ctx.data.run());
    }
}

/// The first sweep, before the first request: nobody may meet a half-made sandbox. In a fork like all later ones: whoever reads
/// records must not become the ancestor of a sandbox.
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
    /// The process that looks after the house, if one is at it.
    sweeper: Option<i32>,
    /// The process that measures disks, if one is at it.
    guard: Option<i32>,
    /// The process that watches the host's free space.
    disk_watch: Option<i32>,
    /// The process that fills up the stock of empty disks, if one is at it.
    stocker: Option<i32>,
}

impl Launcher<'_> {
    fn serve(&mut self) {
        terminate::catch();
        let mut idle_since = Instant::now();
        let mut swept = Instant::now();
        let mut guarded = Instant::now();
        loop {
            let ready = self.wait_for_connection();
            if terminate::is_asked() {
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
            if self.guard.is_none() {
                self.start_guard(&mut guarded);
            }
            if self.disk_watch.is_none() {
                let launcher = rustix::process::getpid();
                self.disk_watch = start_fork(self, |own| disk_watch::watch(&own.ctx, launcher));
            }
            // Logging out can take the user's folder in memory away.
            if !self.ctx.data.id_ranges().is_dir() {
                let _ = self.ctx.data.create();
            }
            if self.stocker.is_none()
                && stock::is_short(&self.ctx.data.blanks())
                && matches!(disk::is_nearly_full(&self.ctx.data), Ok(false))
            {
                self.stocker = start_fork(self, |launcher| {
                    let lock = Lock::try_take(&launcher.ctx.data.stock_lock());
                    // Another launcher's, killed a moment ago, may still be at it.
                    if let Ok(Some(_lock)) = lock {
                        let _ = stock::refill(&launcher.ctx.data.blanks());
                    }
                });
            }
            let due = swept.elapsed() >= SWEEP_EVERY
                || (swept.elapsed() >= FILL_EVERY && pool::is_off(&self.ctx));
            if due && self.sweeper.is_none() {
                swept = Instant::now();
                self.start_sweeper();
            }
            let patience = self.config.idle_exit;
            if patience.is_some_and(|patience| idle_since.elapsed() >= patience)
                && !self.is_needed()
            {
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
            self.sweeper = self.sweeper.filter(|sweeper| *sweeper != pid);
            self.guard = self.guard.filter(|guard| *guard != pid);
            self.disk_watch = self.disk_watch.filter(|watch| *watch != pid);
            self.stocker = self.stocker.filter(|stocker| *stocker != pid);
        }
    }

    fn start_worker(&mut self, stream: UnixStream) {
        // None: out of processes or memory. The client sees the connection close and may try again.
        self.workers.extend(start_fork(self, |launcher| {
            worker::serve(&launcher.ctx, stream)
        }));
    }

    fn start_guard(&mut self, guarded: &mut Instant) {
        if guarded.elapsed() >= GUARD_EVERY && guard::is_needed(&self.ctx) {
            *guarded = Instant::now();
            self.guard = start_fork(self, |launcher| guard::check_limits(&launcher.ctx));
        }
    }

    fn start_sweeper(&mut self) {
        self.sweeper = start_fork(self, |launcher| {
            // Not in one process: a sweep has read every sandbox's record, secrets and all, and what fills the pool becomes
            // the first process of somebody's sandbox.
            if let Ok(Forked::Child) = fork() {
                run_and_leave(|| drop(pool::fill(&launcher.ctx)));
            }
            let _ = sweep::sweep(&launcher.ctx);
        });
    }

    /// In a fork: what must end with the launcher must not be held by a worker that outlives it.
    fn give_up_own_descriptors(&self) {
        close_in_fork(self.listener.as_raw_fd());
        close_in_fork(self._lock.as_raw_fd());
    }

    /// Something would go unwatched without us.
    fn is_needed(&self) -> bool {
        guard::is_needed(&self.ctx)
            || disk_watch::has_images(&self.ctx)
            || !pool::settings(&self.ctx).is_empty()
            || pool::is_off(&self.ctx)
    }
}

/// Has `work` done by a fork; returns its process id.
fn start_fork<'a>(launcher: &Launcher<'a>, work: impl FnOnce(&Launcher<'a>)) -> Option<i32> {
    match fork() {
        Ok(Forked::Parent { pid }) => Some(pid),
        Ok(Forked::Child) => {
            terminate::restore();
            launcher.give_up_own_descriptors();
            run_and_leave(|| work(launcher));
        }
        Err(_) => None,
    }
}

/// Closes, in a fork, a descriptor of the launcher's: what ends with the launcher must not be held by those who outlive it.
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

/// Says whether an error means that a launcher is already there.
pub fn is_taken(error: &EngineError) -> bool {
    error.kind == ErrorKind::Conflict
}
