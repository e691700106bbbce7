//! Processes, running and finished, and the calls about them.

mod rpc;
mod stream;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use sandyard_wire::process::{
    ListResponse, ProcessConfig, ProcessInfo, ProcessInput, ProcessSelector,
};
use sandyard_wire::{Code, ConnectError, EndEvent, Output};
use tokio::sync::watch;

use crate::agent::Result;

pub(super) use rpc::{stream, unary};

/// Maximum number of output bytes stored for clients that connect later.
const MAX_OUTPUT_BYTES: usize = 4 << 20;

/// Maximum number of unread input bytes.
const MAX_INPUT_BYTES: usize = 4 << 20;

/// Maximum number of running processes, and of stored ones.
const MAX_PROCESSES: usize = 256;

/// Pid of the first process; the lower ones would be the agent's.
const FIRST_PID: u32 = 100;

/// A command, running or finished.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) tag: Option<String>,
    pub(super) is_terminal: bool,
    config: ProcessConfig,
    state: Mutex<State>,
    /// Notified when the state changes.
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct State {
    output: VecDeque<Output>,
    /// Offset of the oldest stored output.
    start: u64,
    end_offset: u64,
    /// Offset up to which a client has received the output.
    delivered: u64,
    readers: usize,
    input: VecDeque<Bytes>,
    input_bytes: usize,
    is_input_closed: bool,
    signal: Option<i32>,
    timed_out: bool,
    end: Option<EndEvent>,
}

impl Process {
    fn notify(&self) {
        self.changed.send_replace(());
    }

    /// Stores output, and discards the oldest when there is too much.
    pub(super) fn push(&self, output: Output) {
        let length = output.bytes().len();
        if length == 0 {
            return;
        }
        let mut state = self.state.lock();
        state.end_offset += length as u64;
        state.output.push_back(output);
        while state.end_offset - state.start > MAX_OUTPUT_BYTES as u64 && state.output.len() > 1 {
            let oldest = state.output.pop_front();
            state.start += oldest.map_or(0, |oldest| oldest.bytes().len() as u64);
        }
        drop(state);
        self.notify();
    }

    /// Waits for input; returns `None` at its end.
    pub(super) async fn read_input(&self) -> Option<Bytes> {
        let mut changed = self.changed.subscribe();
        loop {
            {
                let mut state = self.state.lock();
                if let Some(bytes) = state.input.pop_front() {
                    state.input_bytes -= bytes.len();
                    return Some(bytes);
                }
                if state.is_input_closed {
                    return None;
                }
            }
            changed.changed().await.ok()?;
        }
    }

    fn write_input(&self, input: ProcessInput) -> Result<()> {
        let bytes = match (input, self.is_terminal) {
            (ProcessInput::Stdin(bytes), false) | (ProcessInput::Pty(bytes), true) => bytes,
            (ProcessInput::Stdin(_), true) => {
                return Err(refused(
                    "the process has a terminal: send the input as pty, not as stdin",
                ));
            }
            (ProcessInput::Pty(_), false) => return Err(refused("the process has no terminal")),
        };
        let mut state = self.state.lock();
        if state.is_input_closed {
            return Err(refused(
                "the process's stdin is closed or was not requested",
            ));
        }
        if state.input_bytes + bytes.len() > MAX_INPUT_BYTES {
            let message = "the process takes no more input";
            return Err(ConnectError::new(Code::Aborted, message));
        }
        state.input_bytes += bytes.len();
        state.input.push_back(bytes);
        drop(state);
        self.notify();
        Ok(())
    }

    fn close_input(&self) -> Result<()> {
        if self.is_terminal {
            return Err(refused("a terminal's input cannot be closed"));
        }
        self.state.lock().is_input_closed = true;
        self.notify();
        Ok(())
    }

    pub(super) fn signal(&self, number: i32) {
        self.state.lock().signal.get_or_insert(number);
        self.notify();
    }

    /// Waits for a signal and returns its number.
    async fn signalled(&self) -> i32 {
        let mut changed = self.changed.subscribe();
        loop {
            if let Some(number) = self.state.lock().signal {
                return number;
            }
            if changed.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn finish(&self, end: EndEvent, timed_out: bool) {
        let mut state = self.state.lock();
        state.timed_out = timed_out;
        state.end.get_or_insert(end);
        drop(state);
        self.notify();
    }

    fn is_running(&self) -> bool {
        self.state.lock().end.is_none()
    }
}

fn refused(message: &str) -> ConnectError {
    ConnectError::new(Code::FailedPrecondition, message)
}

/// All running and some finished processes, in order of start.
#[derive(Debug, Default)]
pub(super) struct Registry {
    processes: Mutex<Vec<Arc<Process>>>,
    started: AtomicU32,
}

impl Registry {
    /// Number of running processes.
    pub(super) fn running(&self) -> usize {
        self.processes
            .lock()
            .iter()
            .filter(|process| process.is_running())
            .count()
    }

    pub(super) fn kill_all(&self) {
        for process in self.processes.lock().iter() {
            process.signal(9);
        }
    }

    fn add(
        &self,
        config: ProcessConfig,
        tag: Option<String>,
        is_terminal: bool,
        has_input: bool,
    ) -> Result<Arc<Process>> {
        let mut processes = self.processes.lock();
        if processes
            .iter()
            .filter(|process| process.is_running())
            .count()
            >= MAX_PROCESSES
        {
            let message = format!("{MAX_PROCESSES} processes are running already");
            return Err(ConnectError::new(Code::ResourceExhausted, message));
        }
        while processes.len() >= MAX_PROCESSES {
            let Some(oldest) = processes.iter().position(|process| !process.is_running()) else {
                break;
            };
            processes.remove(oldest);
        }
        let process = Arc::new(Process {
            pid: FIRST_PID + self.started.fetch_add(1, Ordering::Relaxed),
            tag,
            is_terminal,
            config,
            state: Mutex::new(State {
                is_input_closed: !has_input,
                ..State::default()
            }),
            changed: watch::Sender::new(()),
        });
        processes.push(process.clone());
        Ok(process)
    }

    fn list(&self) -> ListResponse {
        let processes = self.processes.lock();
        let running = processes.iter().filter(|process| process.is_running());
        let info = |process: &Arc<Process>| ProcessInfo {
            config: process.config.clone(),
            pid: process.pid,
            tag: process.tag.clone(),
        };
        ListResponse {
            processes: running.map(info).collect(),
        }
    }

    fn find(&self, selector: &ProcessSelector, only_running: bool) -> Result<Arc<Process>> {
        let is_it = |process: &&Arc<Process>| match selector {
            ProcessSelector::Pid(pid) => process.pid == *pid,
            ProcessSelector::Tag(tag) => process.tag.as_ref() == Some(tag),
        };
        let processes = self.processes.lock();
        let mut found = processes.iter().rev().filter(is_it);
        let found = found.find(|process| !only_running || process.is_running());
        found.cloned().ok_or_else(|| {
            ConnectError::not_found(match selector {
                ProcessSelector::Pid(pid) => format!("process with pid {pid} not found"),
                ProcessSelector::Tag(tag) => format!("process with tag '{tag}' not found"),
            })
        })
    }
}
