//! The calls of `filesystem.Filesystem` that watch.

use std::path::Path;

use sandyard_wire::filesystem::{WatchRequest, WatcherEvents, WatcherRef};
use sandyard_wire::{ConnectError, json::Empty, request, routes};
use tokio::time::Instant;

use super::stream::WatchStream;
use super::watcher::Interest;
use crate::body::Body;
use crate::call::{Call, Response, json_reply, stream_reply};
use crate::filesystem::from_io;
use crate::path;

/// File systems on which remote changes are not reported: NFS, three versions of SMB, FUSE.
const NETWORK_FILE_SYSTEMS: [i64; 5] = [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x6573_5546];

/// Answers the unary calls; `None` when the path is not one of them.
pub(crate) async fn unary(call: &mut Call) -> Option<Result<Response, ConnectError>> {
    Some(match call.path() {
        routes::filesystem::CREATE_WATCHER => create_watcher(call).await,
        routes::filesystem::GET_WATCHER_EVENTS => get_watcher_events(call).await,
        routes::filesystem::REMOVE_WATCHER => remove_watcher(call).await,
        _ => return None,
    })
}

/// Streams changes of a directory.
pub(crate) async fn watch_dir(call: &mut Call) -> Result<Response, ConnectError> {
    let deadline = request::timeout(call.headers())?.map(|timeout| Instant::now() + timeout);
    let request: WatchRequest = call.stream_message().await?;
    let watching = call.agent.watches.watch(interest(call, &request)?)?;
    let stream = WatchStream::new(
        watching,
        call.peer.clone(),
        request::keepalive(call.headers()),
        deadline,
        call.agent.counters.open_stream(),
    );
    Ok(stream_reply(Body::from_frames(stream, async |stream| {
        stream.next().await
    })))
}

async fn create_watcher(call: &mut Call) -> Result<Response, ConnectError> {
    let request: WatchRequest = call.message().await?;
    let watching = call.agent.watches.watch(interest(call, &request)?)?;
    let watcher_id = call.agent.watches.store(watching);
    Ok(json_reply(&WatcherRef { watcher_id }))
}

async fn get_watcher_events(call: &mut Call) -> Result<Response, ConnectError> {
    let request: WatcherRef = call.message().await?;
    let watcher = call.agent.watches.find(&request.watcher_id);
    let watcher = watcher.ok_or_else(|| unknown(&request))?;
    // Lets the event loop read changes that the kernel has reported already.
    tokio::task::yield_now().await;
    Ok(json_reply(&WatcherEvents {
        events: watcher.take()?,
    }))
}

async fn remove_watcher(call: &mut Call) -> Result<Response, ConnectError> {
    let request: WatcherRef = call.message().await?;
    if !call.agent.watches.remove_by_name(&request.watcher_id) {
        return Err(unknown(&request));
    }
    Ok(json_reply(&Empty {}))
}

fn unknown(request: &WatcherRef) -> ConnectError {
    ConnectError::not_found(format!("watcher '{}' not found", request.watcher_id))
}

fn interest(call: &Call, request: &WatchRequest) -> Result<Interest, ConnectError> {
    let (account, _) = call.account()?;
    let root = path::resolve(&request.path, &account, &call.agent.settings.borrow())?;
    let stat = rustix::fs::stat(&root).map_err(|error| from_io(&root, &error.into()))?;
    if !rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir() {
        return Err(ConnectError::invalid_argument(format!(
            "path '{}' is not a directory",
            root.display()
        )));
    }
    if !request.allow_network_mounts && is_on_network(&root) {
        return Err(ConnectError::invalid_argument(format!(
            "path '{}' is on a network file system, where changes may be missed: set `allowNetworkMounts` to watch it anyway",
            root.display()
        )));
    }
    Ok(Interest {
        root,
        is_recursive: request.recursive,
        with_entry: request.include_entry,
    })
}

fn is_on_network(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|stat| NETWORK_FILE_SYSTEMS.contains(&stat.f_type))
}
