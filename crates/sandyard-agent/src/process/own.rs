//! Programs of our own: a fork of the agent that becomes a user and goes on without an exec, since a sandbox has no file
//! with our program.
//!
//! What it inherits and must not use is the agent's event loop, which lives on the stack of the first thread: that thread
//! only waits, and a new one does the work. What it inherits and nobody else may see is the agent's memory, the access
//! token in it: the fork cannot be dumped, so nobody inside reads its memory or traces it, nor opens the program file
//! behind it, which is the host's. What our own code could be made to tell of that memory is no more than the agent
//! itself could.

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::process::Pid;
use sandyard_wire::ConnectError;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::command::Command;
use super::errand::Errand;
use super::exec::take_place;
use super::launch::{no_resources, start_error};
use super::minder::{close_all_but, fork_minder};
use super::pump::{self, Source};
use super::report::{Report, Stage, errno};
use super::signals::{DeathHandler, empty_signals, set_signal_mask};
use super::stdio::{self, ChildStdio};
use super::tree;
use crate::event_loop::WakePair;
use crate::ready;
use crate::start::Log;

/// What the process says of itself when our program panicked, or could not even begin.
const BROKEN: i32 = 70;

/// What to run.
pub(crate) struct Own<'a> {
    /// Who it is, where, and with which variables.
    pub(crate) command: Command,
    /// What `ps` calls it; at most 15 bytes.
    pub(crate) name: &'static std::ffi::CStr,
    /// Descriptors that `main` uses.
    pub(crate) kept: Vec<RawFd>,
    pub(crate) wake: WakePair,
    /// What has to be forgotten first.
    pub(crate) forget: &'a dyn Fn(),
    /// The program; what it returns is the exit code.
    pub(crate) main: Box<dyn FnOnce() -> i32 + Send>,
}

/// A program of our own that runs or ran.
#[derive(Debug)]
pub(crate) struct OwnProcess {
    minder: Pid,
    status: AsyncFd<OwnedFd>,
}

/// Forks and returns once the program runs. What it says goes to the log.
pub(crate) async fn fork_own(own: Own<'_>, log: &Log) -> Result<OwnProcess, ConnectError> {
    let failed = |error: io::Error| no_resources(&error);
    let owner = own.command.identity.as_ref().map(|identity| identity.uid);
    let (child, ends) = stdio::pipes(false, owner).map_err(failed)?;
    let errand = OwnErrand {
        death_handler: DeathHandler::current(),
        main: Cell::new(Some(own.main)),
        command: own.command,
        name: own.name,
        kept: own.kept,
        wake: own.wake,
        forget: own.forget,
    };
    let minder = fork_minder(&errand, child).map_err(failed)?;
    let process = OwnProcess {
        minder: minder.pid,
        status: ready::register(minder.status, Interest::READABLE).map_err(failed)?,
    };
    let OwnErrand { command, main, .. } = errand;
    // With the fork's ends of what it talks over, so that its death is noticed.
    drop(main);
    for (channel, fd) in ends.outputs {
        let fd = ready::register(fd, Interest::READABLE).map_err(failed)?;
        let (source, log) = (Source { channel, fd }, log.clone());
        tokio::task::spawn_local(async move {
            while let Ok(1..) = pump::read_ready(&source, |bytes| log.write(bytes)).await {}
        });
    }
    match pump::next_report(&process.status).await {
        Some(Report::Started { .. }) => Ok(process),
        Some(Report::Failed { stage, errno }) => Err(start_error(&command, stage, errno)),
        _ => Err(ConnectError::internal(
            "the process was killed at its start",
        )),
    }
}

impl OwnProcess {
    /// Waits for its end and tells how it was.
    pub(crate) async fn ended(&self) -> String {
        match pump::next_report(&self.status).await {
            Some(Report::Ended { status }) => pump::end_of_status(status).status,
            _ => "killed".to_owned(),
        }
    }

    /// Kills it with all it has started.
    pub(crate) async fn kill(&self) {
        tree::kill_below(self.minder).await;
    }
}

struct OwnErrand<'a> {
    command: Command,
    name: &'static std::ffi::CStr,
    kept: Vec<RawFd>,
    wake: WakePair,
    death_handler: DeathHandler,
    forget: &'a dyn Fn(),
    main: Cell<Option<Box<dyn FnOnce() -> i32 + Send>>>,
}

impl Errand for OwnErrand<'_> {
    fn kept(&self) -> &[RawFd] {
        &self.kept
    }

    fn become_it(&self, stdio: &ChildStdio) -> (Stage, i32) {
        if let Err(failure) = take_place(&self.command, stdio) {
            return failure;
        }
        // SAFETY: plain system calls; the name is a C string. Never dumpable: see above. A change of user has done that as
        // a rule, but there may be nobody to change to.
        unsafe {
            if libc::prctl(libc::PR_SET_DUMPABLE, 0) != 0 {
                return (Stage::Identity, errno());
            }
            libc::prctl(libc::PR_SET_NAME, self.name.as_ptr());
        }
        let Some(main) = self.main.take() else {
            return (Stage::Exec, libc::EINVAL);
        };
        // The failure pipe is closed with the rest, which tells the minder that all is well.
        let mut kept = self.kept.clone();
        kept.extend([0, 1, 2]);
        close_all_but(&mut kept);
        crate::limits::restore_in_child();
        let code = catch_unwind(AssertUnwindSafe(|| {
            (self.forget)();
            self.run(main)
        }));
        // SAFETY: ends this process at once, running nothing of the agent's.
        unsafe { libc::_exit(code.unwrap_or(BROKEN)) }
    }
}

impl OwnErrand<'_> {
    /// Runs the program in a thread of its own, and waits for it in this one.
    fn run(&self, main: Box<dyn FnOnce() -> i32 + Send>) -> i32 {
        if self.wake.renew().is_err() {
            return BROKEN;
        }
        self.death_handler.install();
        // SAFETY: sets a disposition: a peer that leaves must not end it. What it executes gets the default back from `std`.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
        set_signal_mask(&empty_signals());
        set_environment(&self.command.variables());
        // Whoever forked the agent may have made a panic the end of the process.
        let _ = std::panic::take_hook();
        let thread = std::thread::Builder::new().name("tools".to_owned());
        let running = thread.spawn(move || catch_unwind(AssertUnwindSafe(main)).unwrap_or(BROKEN));
        running
            .ok()
            .and_then(|running| running.join().ok())
            .unwrap_or(BROKEN)
    }
}

/// Replaces the variables, which are those of whoever started the agent.
#[expect(clippy::disallowed_methods, reason = "there is no other thread yet")]
fn set_environment(variables: &[(OsString, OsString)]) {
    // SAFETY: this process has one thread.
    unsafe { libc::clearenv() };
    for (name, value) in variables {
        // SAFETY: this process has one thread; names and values were checked when the command was made.
        unsafe { std::env::set_var(name, value) };
    }
}

impl Command {
    /// Its variables.
    pub(crate) fn variables(&self) -> Vec<(OsString, OsString)> {
        let text = |bytes| OsStr::from_bytes(bytes).to_owned();
        let pairs = self.env.iter().filter_map(|pair| {
            let bytes = pair.to_bytes();
            let at = bytes.iter().position(|&byte| byte == b'=')?;
            Some((text(&bytes[..at]), text(&bytes[at + 1..])))
        });
        pairs.collect()
    }
}
