//! The unary calls of `filesystem.Filesystem`.

mod entry;
mod error;
mod list;
mod make;
mod remove;
mod rename;

use std::path::PathBuf;

use sandyard_wire::filesystem::{EntryResponse, ListDirRequest, MoveRequest, PathRequest};
use sandyard_wire::{ConnectError, json::Empty, routes};

pub(crate) use entry::describe;
pub(crate) use error::from_io;
pub(crate) use make::make_all;

use crate::call::{Call, Response, json_reply};
use crate::path;
use crate::user::{Account, Accounts};

/// Answers a call; `None` when the path is not one of these.
pub(crate) async fn unary(call: &mut Call) -> Option<Result<Response, ConnectError>> {
    Some(match call.path() {
        routes::filesystem::STAT => stat(call).await,
        routes::filesystem::MAKE_DIR => make_dir(call).await,
        routes::filesystem::MOVE => move_entry(call).await,
        routes::filesystem::LIST_DIR => list_dir(call).await,
        routes::filesystem::REMOVE => remove_entry(call).await,
        _ => return None,
    })
}

/// The caller's account and the path of a request.
struct Subject {
    account: Account,
    accounts: Accounts,
}

impl Subject {
    fn of(call: &Call) -> Result<Self, ConnectError> {
        let (account, accounts) = call.account()?;
        Ok(Self { account, accounts })
    }

    fn resolve(&self, call: &Call, path: &str) -> Result<PathBuf, ConnectError> {
        path::resolve(path, &self.account, &call.agent.settings.borrow())
    }
}

async fn stat(call: &mut Call) -> Result<Response, ConnectError> {
    let request: PathRequest = call.message().await?;
    let subject = Subject::of(call)?;
    let path = subject.resolve(call, &request.path)?;
    let entry =
        describe(&path, &subject.accounts.names()).map_err(|error| from_io(&path, &error))?;
    Ok(json_reply(&EntryResponse { entry }))
}

async fn make_dir(call: &mut Call) -> Result<Response, ConnectError> {
    let request: PathRequest = call.message().await?;
    let subject = Subject::of(call)?;
    let path = subject.resolve(call, &request.path)?;
    make::make_dir(&path, &subject.account)?;
    let entry =
        describe(&path, &subject.accounts.names()).map_err(|error| from_io(&path, &error))?;
    Ok(json_reply(&EntryResponse { entry }))
}

async fn move_entry(call: &mut Call) -> Result<Response, ConnectError> {
    let request: MoveRequest = call.message().await?;
    let subject = Subject::of(call)?;
    let source = subject.resolve(call, &request.source)?;
    let destination = subject.resolve(call, &request.destination)?;
    rename::rename(&source, &destination, &subject.account)?;
    let entry = describe(&destination, &subject.accounts.names())
        .map_err(|error| from_io(&destination, &error))?;
    Ok(json_reply(&EntryResponse { entry }))
}

async fn list_dir(call: &mut Call) -> Result<Response, ConnectError> {
    let request: ListDirRequest = call.message().await?;
    let subject = Subject::of(call)?;
    let path = subject.resolve(call, &request.path)?;
    let entries = list::list(&path, request.depth.max(1), &subject.accounts.names()).await?;
    Ok(json_reply(&entries))
}

async fn remove_entry(call: &mut Call) -> Result<Response, ConnectError> {
    let request: PathRequest = call.message().await?;
    let subject = Subject::of(call)?;
    let path = subject.resolve(call, &request.path)?;
    remove::remove(&path).await?;
    Ok(json_reply(&Empty {}))
}
