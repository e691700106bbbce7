//! The events of one process for one client.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use sandyard_wire::process::EventMessage;
use sandyard_wire::{Code, ConnectError, ProcessEvent, frame};
use tokio::time::Instant;

use super::reader::{Next, Reader};
use super::tracked_process::Process;
use crate::activity::OpenStream;
use crate::socket::Peer;

/// How long a stream waits for the end of a killed process before it reports the time-out.
const KILL_GRACE: Duration = Duration::from_secs(2);

/// When a stream has to end.
#[derive(Debug, Clone, Copy)]
pub(super) enum Deadline {
    Never,
    /// Never; but the stream continues that of a `Start`, so it reports the process's time-out as that one would.
    Continued,
    /// The stream ends then; the process goes on.
    Stream(Instant),
    /// The process is killed then.
    Process(Instant),
}

/// A stream of events, which the HTTP connection pulls one frame at a time.
#[derive(Debug)]
pub(super) struct EventStream {
    process: Rc<Process>,
    reader: Option<Reader>,
    peer: Peer,
    keepalive: Duration,
    deadline: Deadline,
    stage: Stage,
    _open: OpenStream,
}

#[derive(Debug)]
enum Stage {
    Start,
    Events,
    Close(Option<ConnectError>),
    Done,
}

impl EventStream {
    pub(super) fn new(
        process: Rc<Process>,
        reader: Reader,
        peer: Peer,
        keepalive: Duration,
        deadline: Deadline,
    ) -> Self {
        let open = process.counters.open_stream();
        Self {
            reader: Some(reader),
            process,
            peer,
            keepalive,
            deadline,
            stage: Stage::Start,
            _open: open,
        }
    }

    /// The next frame; `None` when the stream has ended.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Start => {
                self.stage = Stage::Events;
                let pid = self.process.pid;
                Some(event(ProcessEvent::Start { pid }))
            }
            Stage::Events => {
                self.stage = Stage::Events;
                self.next_event().await
            }
            Stage::Close(error) => Some(frame::encode_end(error)),
            Stage::Done => None,
        }
    }

    async fn next_event(&mut self) -> Option<Bytes> {
        let process = self.process.clone();
        loop {
            let changed = process.changed.notified();
            match self.reader.as_ref().map(Reader::next)? {
                Next::Output(channel, bytes) => {
                    return Some(event(ProcessEvent::Data(channel.output(bytes))));
                }
                Next::End(end) => {
                    self.reader = None;
                    let reports_timeout =
                        matches!(self.deadline, Deadline::Process(_) | Deadline::Continued);
                    if self.process.timed_out.get() && reports_timeout {
                        return Some(frame::encode_end(Some(self.close_now(timed_out()))));
                    }
                    self.stage = Stage::Close(None);
                    return Some(event(ProcessEvent::End(end)));
                }
                Next::Detached => {
                    let error = ConnectError::new(
                        Code::Aborted,
                        "the output was not read for too long: connect again to continue",
                    );
                    return Some(frame::encode_end(Some(self.close_now(error))));
                }
                Next::Wait => {}
            }
            tokio::select! {
                () = changed => {}
                () = self.peer.closed() => {
                    self.stage = Stage::Done;
                    return None;
                }
                () = tokio::time::sleep(self.keepalive) => {
                    return Some(event(ProcessEvent::Keepalive));
                }
                () = expiry(self.deadline) => {
                    return Some(frame::encode_end(Some(self.close_now(timed_out()))));
                }
            }
        }
    }

    fn close_now(&mut self, error: ConnectError) -> ConnectError {
        self.reader = None;
        self.stage = Stage::Done;
        error
    }
}

async fn expiry(deadline: Deadline) {
    match deadline {
        Deadline::Never | Deadline::Continued => std::future::pending().await,
        Deadline::Stream(at) => tokio::time::sleep_until(at).await,
        Deadline::Process(at) => tokio::time::sleep_until(at + KILL_GRACE).await,
    }
}

fn timed_out() -> ConnectError {
    ConnectError::new(
        Code::DeadlineExceeded,
        "the process exceeded its time limit and was killed",
    )
}

fn event(event: ProcessEvent) -> Bytes {
    frame::encode_json(&EventMessage { event }).expect("events hold nothing that JSON cannot")
}
