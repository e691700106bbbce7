//! The events of one process for one client.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sandyard_wire::process::EventMessage;
use sandyard_wire::{Code, ConnectError, Output, ProcessEvent, frame};
use tokio::time::Instant;

use super::Process;

/// The event stream of one client.
pub(super) struct Events {
    pub(super) reader: Reader,
    pub(super) keepalive: Duration,
    /// When the stream ends although the process still runs.
    pub(super) deadline: Option<Instant>,
    /// Whether the timeout is that of the process.
    pub(super) reports_timeout: bool,
    pub(super) stage: Stage,
}

pub(super) enum Stage {
    Start,
    Events,
    Close,
    Done,
}

/// Reads the output of a process from an offset on.
pub(super) struct Reader {
    pub(super) process: Arc<Process>,
    position: u64,
}

impl Reader {
    pub(super) fn new(process: Arc<Process>, position: u64) -> Self {
        process.state.lock().readers += 1;
        Self { process, position }
    }

    /// The next piece of output, or the end of the process.
    fn next(&mut self) -> Option<ProcessEvent> {
        let mut state = self.process.state.lock();
        let mut offset = state.start;
        self.position = self.position.max(offset);
        let mut found = None;
        for output in &state.output {
            let end_offset = offset + output.bytes().len() as u64;
            if self.position < end_offset {
                // At most the length of this piece.
                let skip = usize::try_from(self.position - offset).unwrap_or(usize::MAX);
                found = Some((rest(output, skip), end_offset));
                break;
            }
            offset = end_offset;
        }
        match found {
            Some((output, end_offset)) => {
                self.position = end_offset;
                state.delivered = state.delivered.max(end_offset);
                Some(ProcessEvent::Data(output))
            }
            None => state.end.clone().map(ProcessEvent::End),
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.process.state.lock().readers -= 1;
    }
}

fn rest(output: &Output, skip: usize) -> Output {
    let cut = |bytes: &Bytes| bytes.slice(skip.min(bytes.len())..);
    match output {
        Output::Stdout(bytes) => Output::Stdout(cut(bytes)),
        Output::Stderr(bytes) => Output::Stderr(cut(bytes)),
        Output::Pty(bytes) => Output::Pty(cut(bytes)),
    }
}

/// The next frame; `None` at the end of the stream.
pub(super) async fn next_frame(mut events: Events) -> Option<(Bytes, Events)> {
    match events.stage {
        Stage::Start => {
            events.stage = Stage::Events;
            let pid = events.reader.process.pid;
            Some((event(ProcessEvent::Start { pid }), events))
        }
        Stage::Events => next_event(events).await,
        Stage::Close => {
            events.stage = Stage::Done;
            Some((frame::encode_end(None), events))
        }
        Stage::Done => None,
    }
}

async fn next_event(mut events: Events) -> Option<(Bytes, Events)> {
    let process = events.reader.process.clone();
    let mut changed = process.changed.subscribe();
    loop {
        match events.reader.next() {
            Some(ProcessEvent::End(_))
                if events.reports_timeout && process.state.lock().timed_out =>
            {
                return Some(time_is_over(events));
            }
            Some(ProcessEvent::End(end)) => {
                events.stage = Stage::Close;
                return Some((event(ProcessEvent::End(end)), events));
            }
            Some(data) => return Some((event(data), events)),
            None => {}
        }
        let expiry = async {
            match events.deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // The sender lives as long as the process, which this function owns.
            _ = changed.changed() => {}
            () = tokio::time::sleep(events.keepalive) => return Some((event(ProcessEvent::Keepalive), events)),
            () = expiry => return Some(time_is_over(events)),
        }
    }
}

fn time_is_over(mut events: Events) -> (Bytes, Events) {
    events.stage = Stage::Done;
    let error = ConnectError::new(Code::DeadlineExceeded, "the process timed out");
    (frame::encode_end(Some(error)), events)
}

fn event(event: ProcessEvent) -> Bytes {
    frame::encode_json(&EventMessage { event }).unwrap_or_default()
}
