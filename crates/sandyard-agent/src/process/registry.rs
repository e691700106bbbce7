//! All running and recently finished processes.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::join_all;
use rustix::process::Pid;
use sandyard_wire::host::RetainedCommands;
use sandyard_wire::process::{ListResponse, ProcessSelector};
use sandyard_wire::{Code, ConnectError};

use super::spool::SpoolBudget;
use super::tracked_process::{Budget, Process};
use super::tree;

/// Maximum number of running processes.
const MAX_RUNNING: usize = 1024;

/// Maximum number of finished processes, and of retained ones besides.
const MAX_FINISHED: usize = 256;

/// How long a finished process is remembered.
const REMEMBERED: Duration = Duration::from_secs(600);

/// Maximum number of finished processes that keep their output.
const MAX_FINISHED_WITH_OUTPUT: usize = 8;

/// The processes.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    by_start: RefCell<Processes>,
    budget: Rc<Budget>,
    spool_budget: Rc<SpoolBudget>,
}

#[derive(Debug, Default)]
struct Processes {
    running: BTreeMap<u64, Rc<Process>>,
    finished: VecDeque<Rc<Process>>,
    started: u64,
}

impl Registry {
    pub(super) fn budget(&self) -> Rc<Budget> {
        self.budget.clone()
    }

    pub(super) fn spool_budget(&self) -> Rc<SpoolBudget> {
        self.spool_budget.clone()
    }

    /// Number of running processes.
    pub(crate) fn running(&self) -> usize {
        self.by_start.borrow().running.len()
    }

    /// Refuses when too many processes are running.
    pub(super) fn check_capacity(&self) -> Result<(), ConnectError> {
        if self.running() < MAX_RUNNING {
            return Ok(());
        }
        Err(ConnectError::new(
            Code::ResourceExhausted,
            format!("{MAX_RUNNING} processes are running, which is the maximum: end one first"),
        ))
    }

    pub(super) fn add(&self, process: Rc<Process>) {
        let mut processes = self.by_start.borrow_mut();
        // The kernel has reused the pid, so it no longer names the old process.
        processes
            .finished
            .retain(|old| old.pid != process.pid || old.is_retained());
        processes.started += 1;
        let key = processes.started;
        processes.running.insert(key, process);
    }

    /// Moves a process to the finished and forgets the oldest of those.
    pub(super) fn note_end(&self, process: &Rc<Process>) {
        let mut processes = self.by_start.borrow_mut();
        processes
            .running
            .retain(|_, other| !Rc::ptr_eq(other, process));
        processes.finished.push_back(process.clone());
        processes
            .finished
            .retain(|old| old.is_retained() || !is_stale(old));
        for is_retained in [false, true] {
            let count = processes
                .finished
                .iter()
                .filter(|old| old.is_retained() == is_retained)
                .count();
            let mut surplus = count.saturating_sub(MAX_FINISHED);
            processes.finished.retain(|old| {
                let is_removed = surplus > 0 && old.is_retained() == is_retained;
                surplus -= usize::from(is_removed);
                !is_removed
            });
        }
        let silent = processes
            .finished
            .len()
            .saturating_sub(MAX_FINISHED_WITH_OUTPUT);
        for old in processes.finished.iter().take(silent) {
            // Writing to each of them would copy their pages after every fork of a command.
            if old.has_output.get() && !old.is_retained() && old.readers.borrow().is_empty() {
                old.forget_output();
            }
        }
    }

    /// Kills every running process with its descendants.
    pub(crate) async fn kill_all(&self) {
        join_all(self.supervisors().into_iter().map(tree::kill_descendants)).await;
    }

    fn supervisors(&self) -> Vec<Pid> {
        let processes = self.by_start.borrow();
        processes
            .running
            .values()
            .map(|running| running.supervisor)
            .collect()
    }

    /// The running processes, in order of start.
    pub(super) fn list(&self) -> ListResponse {
        let processes = self.by_start.borrow();
        let running = processes
            .running
            .values()
            .filter(|process| process.is_running());
        ListResponse {
            processes: running.map(|process| process.info()).collect(),
        }
    }

    /// Finds a running process.
    pub(super) fn find_running(
        &self,
        selector: &ProcessSelector,
    ) -> Result<Rc<Process>, ConnectError> {
        let processes = self.by_start.borrow();
        let found = processes
            .running
            .values()
            .rev()
            .find(|process| process.is_running() && is_selected(process, selector));
        found.cloned().ok_or_else(|| unknown(selector))
    }

    /// Finds a process, running or finished.
    pub(super) fn find(&self, selector: &ProcessSelector) -> Result<Rc<Process>, ConnectError> {
        let processes = self.by_start.borrow();
        let running = processes.running.values().rev();
        let finished = processes.finished.iter().rev().filter(|old| !is_stale(old));
        running
            .chain(finished)
            .find(|process| is_selected(process, selector))
            .cloned()
            .ok_or_else(|| unknown(selector))
    }
}

impl Registry {
    /// Lists the retained commands: the finished ones first, then the running ones in order of start.
    pub(crate) fn list_retained(&self) -> RetainedCommands {
        let processes = self.by_start.borrow();
        let all = processes.finished.iter().chain(processes.running.values());
        let retained = all.filter(|process| process.is_retained());
        RetainedCommands {
            commands: retained
                .filter_map(|process| Some(process.retention.as_ref()?.info(process.pid)))
                .collect(),
        }
    }

    /// Finds a process by its retention id.
    pub(super) fn find_retained(&self, id: &str) -> Result<Rc<Process>, ConnectError> {
        let processes = self.by_start.borrow();
        let mut all = processes.finished.iter().chain(processes.running.values());
        let found = all.rfind(|process| {
            process
                .retention
                .as_ref()
                .is_some_and(|retention| retention.id == id)
        });
        found
            .cloned()
            .ok_or_else(|| ConnectError::not_found("no command is retained under this id"))
    }

    /// Ends the retention of commands.
    pub(super) fn release(&self, ids: &[String]) {
        let processes = self.by_start.borrow();
        let all = processes.finished.iter().chain(processes.running.values());
        for retention in all.filter_map(|process| process.retention.as_ref()) {
            if ids.contains(&retention.id) {
                retention.release();
            }
        }
    }
}

fn is_stale(process: &Process) -> bool {
    process
        .end()
        .is_some_and(|(_, when)| when.elapsed() > REMEMBERED)
}

fn is_selected(process: &Process, selector: &ProcessSelector) -> bool {
    match selector {
        ProcessSelector::Pid(pid) => process.pid == *pid,
        ProcessSelector::Tag(tag) => process.tag.as_ref() == Some(tag),
    }
}

fn unknown(selector: &ProcessSelector) -> ConnectError {
    ConnectError::not_found(match selector {
        ProcessSelector::Pid(pid) => format!("process with pid {pid} not found"),
        ProcessSelector::Tag(tag) => format!("process with tag '{tag}' not found"),
    })
}
