//! Built-in programs: a fork of the agent that changes its user and continues without an exec, because a sandbox has no
//! file of our program.
//!
//! The fork inherits the agent's event loop and must not use it: the loop lives on the stack of the first thread, so that
//! thread only waits and a new one does the work. It also inherits the agent's memory with the access token. Therefore the
//! fork is not dumpable: no other user inside can read its memory, trace it, or open its program file, which is the host's.
//! Our own code in the fork could leak no more of that memory than the agent itself could.

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

use super::child_task::ChildTask;
use super::command::Command;
use super::exec::prepare_child;
use super::launch::{no_resources, start_error};
use super::pump::{self, Source};
use super::report::{Report, Stage, errno};
use super::signals::{ChildSignalHandler, empty_signals, set_signal_mask};
use super::stdio::{self, ChildStdio};
use super::supervisor::{close_all_but, fork_supervisor};
use super::tree;
use crate::event_loop::WakePair;
use crate::ready;
use crate::start::Log;

/// Exit code of a program that panicked, or could not start.
const BROKEN: i32 = 70;

/// A program to run in a fork.
pub(crate) struct ForkedProgram<'a> {
    /// Its user, working directory and environment.
    pub(crate) command: Command,
    /// Its name in `ps`; at most 15 bytes.
    pub(crate) name: &'static std::ffi::CStr,
    /// Descriptors that `main` uses.
    pub(crate) inherited_fds: Vec<RawFd>,
    pub(crate) wake: WakePair,
    /// Erases secrets of the agent in the fork.
    pub(crate) forget: &'a dyn Fn(),
    /// The program; it returns the exit code.
    pub(crate) main: Box<dyn FnOnce() -> i32 + Send>,
}

/// A forked program that runs or has ended.
#[derive(Debug)]
pub(crate) struct ForkedProcess {
    supervisor: Pid,
    status: AsyncFd<OwnedFd>,
}

/// Forks, and returns when the program runs. Its output goes to the log.
pub(crate) async fn fork_program(
    program: ForkedProgram<'_>,
    log: &Log,
) -> Result<ForkedProcess, ConnectError> {
    let failed = |error: io::Error| no_resources(&error);
    let owner = program
        .command
        .identity
        .as_ref()
        .map(|identity| identity.uid);
    let (child, ends) = stdio::pipes(false, owner).map_err(failed)?;
    let task = ForkTask {
        child_signal_handler: ChildSignalHandler::current(),
        main: Cell::new(Some(program.main)),
        command: program.command,
        name: program.name,
        inherited_fds: program.inherited_fds,
        wake: program.wake,
        forget: program.forget,
    };
    let supervisor = fork_supervisor(&task, child).map_err(failed)?;
    let process = ForkedProcess {
        supervisor: supervisor.pid,
        status: ready::register(supervisor.status, Interest::READABLE).map_err(failed)?,
    };
    let ForkTask { command, main, .. } = task;
    // It holds the fork's ends of the sockets; they are closed here, so that the fork's end is noticed.
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
            "the process was killed while it started",
        )),
    }
}

impl ForkedProcess {
    /// Waits for its end and describes it.
    pub(crate) async fn ended(&self) -> String {
        match pump::next_report(&self.status).await {
            Some(Report::Ended { status }) => pump::end_of_status(status).status,
            _ => "killed".to_owned(),
        }
    }

    /// Kills it with all it has started.
    pub(crate) async fn kill(&self) {
        tree::kill_descendants(self.supervisor).await;
    }
}

struct ForkTask<'a> {
    command: Command,
    name: &'static std::ffi::CStr,
    inherited_fds: Vec<RawFd>,
    wake: WakePair,
    child_signal_handler: ChildSignalHandler,
    forget: &'a dyn Fn(),
    main: Cell<Option<Box<dyn FnOnce() -> i32 + Send>>>,
}

impl ChildTask for ForkTask<'_> {
    fn inherited_fds(&self) -> &[RawFd] {
        &self.inherited_fds
    }

    fn run_in_child(&self, stdio: &ChildStdio) -> (Stage, i32) {
        if let Err(failure) = prepare_child(&self.command, stdio) {
            return failure;
        }
        // SAFETY: plain system calls; the name is a C string. Never dumpable: see above. A change of user usually does
        // that, but there may be no other user.
        unsafe {
            if libc::prctl(libc::PR_SET_DUMPABLE, 0) != 0 {
                return (Stage::Identity, errno());
            }
            libc::prctl(libc::PR_SET_NAME, self.name.as_ptr());
        }
        let Some(main) = self.main.take() else {
            return (Stage::Exec, libc::EINVAL);
        };
        // The failure pipe is closed with the rest, which tells the supervisor that the start succeeded.
        let mut inherited_fds = self.inherited_fds.clone();
        inherited_fds.extend([0, 1, 2]);
        close_all_but(&mut inherited_fds);
        crate::limits::restore_in_child();
        let code = catch_unwind(AssertUnwindSafe(|| {
            (self.forget)();
            self.run(main)
        }));
        // SAFETY: ends this process at once, running nothing of the agent's.
        unsafe { libc::_exit(code.unwrap_or(BROKEN)) }
    }
}

impl ForkTask<'_> {
    /// Runs the program in a thread of its own, and waits for it in this one.
    fn run(&self, main: Box<dyn FnOnce() -> i32 + Send>) -> i32 {
        if self.wake.renew().is_err() {
            return BROKEN;
        }
        self.child_signal_handler.install();
        // SAFETY: sets a disposition: a peer that disconnects must not end it. `std` restores the default in programs that it executes.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
        set_signal_mask(&empty_signals());
        set_environment(&self.command.variables());
        // The creator of the agent may have installed a hook that aborts on panic.
        let _ = std::panic::take_hook();
        let thread = std::thread::Builder::new().name("tools".to_owned());
        let running = thread.spawn(move || catch_unwind(AssertUnwindSafe(main)).unwrap_or(BROKEN));
        running
            .ok()
            .and_then(|running| running.join().ok())
            .unwrap_or(BROKEN)
    }
}

/// Replaces the environment, which the agent inherited from its creator.
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
    /// Its environment variables.
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
