//! The calls of `filesystem.Filesystem` about watchers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use sandyard_wire::filesystem::{WatchDirResponse, WatchRequest, WatcherEvents, WatcherRef};
use sandyard_wire::json::Empty;
use sandyard_wire::{Code, ConnectError, EventType, FilesystemEvent, frame, request, routes};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::Instant;

use super::call::{Call, Response, json_reply, stream_reply};
use super::disk::is_in;
use super::disk::path::no_folder;
use super::filesystem::describe;
use super::machine::Machine;
use crate::agent::Result;

/// Maximum number of watchers.
const MAX_WATCHERS: usize = 256;

/// Watchers whose events are polled.
#[derive(Debug, Default)]
pub(super) struct Watchers(Mutex<(u64, BTreeMap<String, Watcher>)>);

/// A watch of a folder.
#[derive(Debug)]
struct Watcher {
    machine: std::sync::Weak<Machine>,
    changes: Receiver<(String, EventType)>,
    root: String,
    is_recursive: bool,
    with_entry: bool,
}

impl Watcher {
    fn new(call: &Call, request: &WatchRequest) -> Result<Self> {
        let root = call.account()?.resolve(&request.path)?;
        if !call.machine.disk.get(&root)?.is_folder() {
            return Err(no_folder(&root));
        }
        Ok(Self {
            machine: Arc::downgrade(&call.machine),
            changes: call.machine.disk.changes(),
            root,
            is_recursive: request.recursive,
            with_entry: request.include_entry,
        })
    }

    /// The event of a change; `None` when it is outside the watched folder.
    fn event(&self, (path, what): (String, EventType)) -> Option<FilesystemEvent> {
        if !is_in(&self.root, &path, self.is_recursive) {
            return None;
        }
        let machine = self.machine.upgrade().filter(|_| self.with_entry);
        let node = machine.and_then(|machine| machine.disk.get(&path).ok());
        Some(FilesystemEvent {
            name: path[self.root.len()..].trim_start_matches('/').to_owned(),
            r#type: what,
            entry: node.map(|node| describe(&path, &node)),
        })
    }

    async fn next(&mut self) -> Result<FilesystemEvent> {
        loop {
            match self.changes.recv().await {
                Ok(change) => {
                    if let Some(event) = self.event(change) {
                        return Ok(event);
                    }
                }
                Err(RecvError::Lagged(_)) => return Err(lost()),
                // The instance was deleted, which ends this stream, too.
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }

    /// The events since the last call.
    fn take(&mut self) -> Result<Vec<FilesystemEvent>> {
        let mut events = Vec::new();
        loop {
            match self.changes.try_recv() {
                Ok(change) => events.extend(self.event(change)),
                Err(TryRecvError::Lagged(_)) => return Err(lost()),
                Err(TryRecvError::Empty | TryRecvError::Closed) => return Ok(events),
            }
        }
    }
}

fn lost() -> ConnectError {
    ConnectError::new(
        Code::ResourceExhausted,
        "changes were not read fast enough; some are lost",
    )
}

/// Streams changes of a folder.
pub(super) async fn watch_dir(call: &mut Call) -> Result<Response> {
    let deadline = request::timeout(&call.parts.headers)?.map(|timeout| Instant::now() + timeout);
    let keepalive = request::keepalive(&call.parts.headers);
    let request: WatchRequest = call.stream_message().await?;
    let watcher = Watcher::new(call, &request)?;
    let stage = Stage::Start(watcher);
    Ok(stream_reply(stage, move |stage| {
        next_frame(stage, keepalive, deadline)
    }))
}

enum Stage {
    Start(Watcher),
    Events(Watcher),
    Done,
}

async fn next_frame(
    stage: Stage,
    keepalive: Duration,
    deadline: Option<Instant>,
) -> Option<(Bytes, Stage)> {
    let mut watcher = match stage {
        Stage::Done => return None,
        Stage::Start(watcher) => {
            return Some((message(&WatchDirResponse::Start), Stage::Events(watcher)));
        }
        Stage::Events(watcher) => watcher,
    };
    let expiry = async {
        match deadline {
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    };
    let event = tokio::select! {
        event = watcher.next() => event.map(WatchDirResponse::Filesystem),
        () = tokio::time::sleep(keepalive) => Ok(WatchDirResponse::Keepalive),
        () = expiry => Err(ConnectError::new(Code::DeadlineExceeded, "the watch timed out")),
    };
    Some(match event {
        Ok(event) => (message(&event), Stage::Events(watcher)),
        Err(error) => (frame::encode_end(Some(error)), Stage::Done),
    })
}

fn message(message: &WatchDirResponse) -> Bytes {
    frame::encode_json(message).unwrap_or_default()
}

/// Answers the calls with one message and one response; `None` for other paths.
pub(super) async fn unary(call: &mut Call) -> Option<Result<Response>> {
    Some(match call.path() {
        routes::filesystem::CREATE_WATCHER => create(call).await,
        routes::filesystem::GET_WATCHER_EVENTS => events(call).await,
        routes::filesystem::REMOVE_WATCHER => remove(call).await,
        _ => return None,
    })
}

async fn create(call: &mut Call) -> Result<Response> {
    let request: WatchRequest = call.message().await?;
    let watcher = Watcher::new(call, &request)?;
    let mut watchers = call.machine.watchers.0.lock();
    if watchers.1.len() >= MAX_WATCHERS {
        let message = format!("{MAX_WATCHERS} watchers exist already");
        return Err(ConnectError::new(Code::ResourceExhausted, message));
    }
    watchers.0 += 1;
    let watcher_id = format!("w{}", watchers.0);
    watchers.1.insert(watcher_id.clone(), watcher);
    Ok(json_reply(&WatcherRef { watcher_id }))
}

async fn events(call: &mut Call) -> Result<Response> {
    let request: WatcherRef = call.message().await?;
    let mut watchers = call.machine.watchers.0.lock();
    let watcher = watchers.1.get_mut(&request.watcher_id);
    let events = watcher.ok_or_else(|| unknown(&request))?.take()?;
    Ok(json_reply(&WatcherEvents { events }))
}

async fn remove(call: &mut Call) -> Result<Response> {
    let request: WatcherRef = call.message().await?;
    let removed = call.machine.watchers.0.lock().1.remove(&request.watcher_id);
    removed.ok_or_else(|| unknown(&request))?;
    Ok(json_reply(&Empty {}))
}

fn unknown(request: &WatcherRef) -> ConnectError {
    ConnectError::not_found(format!("watcher '{}' not found", request.watcher_id))
}
