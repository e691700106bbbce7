//! Work in steps, each with its undo, and faults that tests inject to prove that the undos work.

use serde::{Deserialize, Serialize};

use crate::error::{EngineError, ErrorKind, Result};

/// A failure that a test asks for. A launcher honours it only when started with `--allow-faults`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Which process it hits.
    pub process: FaultProcess,
    /// The number of the step that is hit, counted from 1.
    pub step: u32,
    /// What happens there.
    pub action: FaultAction,
}

/// Which process a fault hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultProcess {
    /// The worker that serves the request.
    Worker,
    /// The first process of the sandbox, while it sets itself up.
    Init,
}

/// What a fault does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultAction {
    /// The step reports failure without having been taken.
    Fail,
    /// The process is killed just before the step; in a worker, the launcher with it.
    KillBefore,
    /// The process is killed just after the step; in a worker, the launcher with it.
    KillAfter,
    /// An optional step is skipped, as on a kernel without that feature. Any other step runs.
    Skip,
}

/// Counts the steps of one process and injects its fault.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    fault: Option<Fault>,
    /// Steps so far.
    count: u32,
}

impl Faults {
    /// Keeps the fault if it is meant for `process`.
    pub(crate) fn at(process: FaultProcess, fault: Option<Fault>) -> Self {
        Self {
            fault: fault.filter(|fault| fault.process == process),
            count: 0,
        }
    }

    /// Runs one step, unless a fault is due.
    pub(crate) fn step<T, E: Into<EngineError>>(
        &mut self,
        name: &'static str,
        act: impl FnOnce() -> Result<T, E>,
    ) -> Result<T> {
        self.count += 1;
        let due = self.fault.filter(|fault| fault.step == self.count);
        match due.map(|fault| fault.action) {
            Some(FaultAction::Fail) => {
                return Err(EngineError::new(
                    ErrorKind::Failed,
                    format!("step `{name}` failed because a test asked for it"),
                ));
            }
            Some(FaultAction::KillBefore) => self.die(),
            _ => {}
        }
        let result = act()
            .map_err(Into::into)
            .map_err(|error: EngineError| EngineError {
                message: format!("could not {name}: {}", error.message),
                ..error
            });
        if let Some(FaultAction::KillAfter) = due.map(|fault| fault.action) {
            self.die();
        }
        result
    }

    /// Runs an optional step. The inner result is that of the step; the outer one fails only by a fault.
    pub(crate) fn attempt<T, E: Into<EngineError>>(
        &mut self,
        name: &'static str,
        act: impl FnOnce() -> Result<T, E>,
    ) -> Result<Result<T>> {
        let due = self
            .fault
            .is_some_and(|fault| fault.step == self.count + 1 && fault.action == FaultAction::Skip);
        if due {
            self.count += 1;
            let message = format!("step `{name}` was skipped because a test asked for it");
            return Ok(Err(EngineError::new(ErrorKind::Unsupported, message)));
        }
        self.step(name, || Ok::<_, EngineError>(act().map_err(Into::into)))
    }

    fn die(&self) {
        if self
            .fault
            .is_some_and(|fault| fault.process == FaultProcess::Worker)
        {
            // If the launcher has died, our parent is the process that adopts orphans.
            let launcher = rustix::process::getppid().filter(|parent| !parent.is_init());
            if let Some(launcher) = launcher {
                let _ = rustix::process::kill_process(launcher, rustix::process::Signal::KILL);
            }
        }
        let _ =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        // PID 1 of a namespace ignores even SIGKILL from within.
        std::process::abort();
    }
}

type Undo<'a> = (&'static str, Box<dyn FnOnce() -> Result<()> + 'a>);

/// The undos of the steps so far.
pub(crate) struct Steps<'a> {
    faults: Faults,
    undos: Vec<Undo<'a>>,
}

impl<'a> Steps<'a> {
    /// Starts with no steps.
    pub(crate) fn new(fault: Option<Fault>) -> Self {
        Self {
            faults: Faults::at(FaultProcess::Worker, fault),
            undos: Vec::new(),
        }
    }

    /// Runs a step.
    pub(crate) fn step<T, E: Into<EngineError>>(
        &mut self,
        name: &'static str,
        act: impl FnOnce() -> Result<T, E>,
    ) -> Result<T> {
        self.faults.step(name, act)
    }

    /// Runs an optional step: see [`Faults::attempt`].
    pub(crate) fn attempt<T, E: Into<EngineError>>(
        &mut self,
        name: &'static str,
        act: impl FnOnce() -> Result<T, E>,
    ) -> Result<Result<T>> {
        self.faults.attempt(name, act)
    }

    /// Registers the undo of the last step, or of the next one: an undo must also work if its step did nothing.
    pub(crate) fn undo(&mut self, name: &'static str, undo: impl FnOnce() -> Result<()> + 'a) {
        self.undos.push((name, Box::new(undo)));
    }

    /// Ends the work. On failure, runs the undos, last first.
    pub(crate) fn finish<T>(mut self, result: Result<T>) -> Result<T> {
        let Err(mut error) = result else {
            return result;
        };
        while let Some((name, undo)) = self.undos.pop() {
            if let Err(failure) = undo() {
                error.cleanup.push(format!("{name}: {failure}"));
            }
        }
        Err(error)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn build(fault: Option<Fault>, log: &RefCell<Vec<&'static str>>) -> Result<()> {
        let mut steps = Steps::new(fault);
        let mut build = || {
            for name in ["one", "two", "three"] {
                steps.step(name, || {
                    log.borrow_mut().push(name);
                    Ok::<_, EngineError>(())
                })?;
                steps.undo(name, move || {
                    log.borrow_mut().retain(|taken| *taken != name);
                    Ok(())
                });
            }
            Ok(())
        };
        let result = build();
        steps.finish(result)
    }

    #[test]
    fn every_failing_step_leaves_nothing() {
        for step in 1..=3 {
            let log = RefCell::new(Vec::new());
            let fault = Fault {
                process: FaultProcess::Worker,
                step,
                action: FaultAction::Fail,
            };
            assert!(build(Some(fault), &log).is_err());
            assert_eq!(*log.borrow(), Vec::<&str>::new(), "step {step}");
        }
    }

    #[test]
    fn success_undoes_nothing() {
        let log = RefCell::new(Vec::new());
        assert!(build(None, &log).is_ok());
        assert_eq!(*log.borrow(), ["one", "two", "three"]);
    }
}
