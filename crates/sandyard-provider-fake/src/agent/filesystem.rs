//! The calls of `filesystem.Filesystem` that are one message and one answer.

use sandyard_wire::filesystem::{
    EntryResponse, ListDirRequest, ListDirResponse, MoveRequest, PathRequest,
};
use sandyard_wire::json::Empty;
use sandyard_wire::{Code, ConnectError, EntryInfo, FileType, routes};

use super::call::{Call, Response, json_reply};
use super::disk::path::{name, parent};
use super::disk::size;
use super::disk::tree::Node;
use super::route::no_such_call;
use crate::agent::Result;

/// Most entries in one answer.
const MAX_ENTRIES: usize = 100_000;

/// Answers a call.
pub(super) async fn unary(call: &mut Call) -> Result<Response> {
    match call.path() {
        routes::filesystem::STAT => stat(call).await,
        routes::filesystem::MAKE_DIR => make_dir(call).await,
        routes::filesystem::MOVE => rename(call).await,
        routes::filesystem::LIST_DIR => list_dir(call).await,
        routes::filesystem::REMOVE => remove(call).await,
        _ => Err(no_such_call()),
    }
}

async fn stat(call: &mut Call) -> Result<Response> {
    let request: PathRequest = call.message().await?;
    let path = call.account()?.resolve(&request.path)?;
    entry_reply(call, &path)
}

async fn make_dir(call: &mut Call) -> Result<Response> {
    let request: PathRequest = call.message().await?;
    let account = call.account()?;
    let path = account.resolve(&request.path)?;
    match call.machine.disk.get(&path) {
        Ok(node) if node.is_folder() => {
            let message = format!("directory already exists: {path}");
            return Err(ConnectError::new(Code::AlreadyExists, message));
        }
        Ok(_) => {
            let message = format!("path '{path}' already exists but it is not a directory");
            return Err(ConnectError::invalid_argument(message));
        }
        Err(_) => call
            .machine
            .disk
            .make_all(&path, &call.machine.stamp(&account))?,
    }
    entry_reply(call, &path)
}

async fn rename(call: &mut Call) -> Result<Response> {
    let request: MoveRequest = call.message().await?;
    let account = call.account()?;
    let (from, to) = (
        account.resolve(&request.source)?,
        account.resolve(&request.destination)?,
    );
    let disk = &call.machine.disk;
    disk.get(&from)?;
    disk.make_all(parent(&to), &call.machine.stamp(&account))?;
    disk.rename(&from, &to)?;
    entry_reply(call, &to)
}

async fn list_dir(call: &mut Call) -> Result<Response> {
    let request: ListDirRequest = call.message().await?;
    let path = call.account()?.resolve(&request.path)?;
    let found = call.machine.disk.list(&path, request.depth.max(1))?;
    if found.len() > MAX_ENTRIES {
        let message = format!("more than {MAX_ENTRIES} entries, list a part of it");
        return Err(ConnectError::new(Code::ResourceExhausted, message));
    }
    let entries = found
        .iter()
        .map(|(path, node)| describe(path, node))
        .collect();
    Ok(json_reply(&ListDirResponse { entries }))
}

async fn remove(call: &mut Call) -> Result<Response> {
    let request: PathRequest = call.message().await?;
    let path = call.account()?.resolve(&request.path)?;
    call.machine.disk.remove(&path)?;
    Ok(json_reply(&Empty {}))
}

fn entry_reply(call: &Call, path: &str) -> Result<Response> {
    let entry = describe(path, &call.machine.disk.get(path)?);
    Ok(json_reply(&EntryResponse { entry }))
}

/// The description of a file or folder.
pub(super) fn describe(path: &str, node: &Node) -> EntryInfo {
    let (kind, mode, permissions) = match node.is_folder() {
        true => (FileType::Directory, 0o755, "drwxr-xr-x"),
        false => (FileType::File, 0o644, "-rw-r--r--"),
    };
    let modified = jiff::Timestamp::from_millisecond(node.modified_ms);
    EntryInfo {
        name: name(path).to_owned(),
        r#type: kind,
        path: path.to_owned(),
        size: size(node),
        mode,
        permissions: permissions.to_owned(),
        owner: node.owner.clone(),
        group: node.owner.clone(),
        modified_time: modified.ok().map(|time| time.to_string()),
        metadata: node.metadata.clone(),
        ..EntryInfo::default()
    }
}
