//! Completion of names that the server knows: sandboxes and templates.

use std::ffi::OsStr;
use std::time::Duration;

use clap::{Arg, Command};
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _,
};
use sandyard_client::{Client, ListFilter};

use crate::commands::sandbox_text::status;
use crate::global::Global;

/// How long the server may take. A shell waits for the answer.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Adds completion to the arguments of all commands that are names.
pub(crate) fn complete_names(command: Command) -> Command {
    command
        .mut_args(|arg| match kind(&arg) {
            Some(Kind::Sandbox) => arg.add(ArgValueCompleter::new(sandboxes)),
            Some(Kind::Template) => arg.add(ArgValueCompleter::new(templates)),
            Some(Kind::Location) => arg.add(ArgValueCompleter::new(locations)),
            None => arg,
        })
        .mut_subcommands(complete_names)
}

enum Kind {
    Sandbox,
    Template,
    /// A path, or a sandbox and a path in it.
    Location,
}

/// What an argument names, according to its help.
fn kind(arg: &Arg) -> Option<Kind> {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    match arg.get_id().as_str() {
        "id" | "ids" | "sandbox" if help.contains("sandbox") => Some(Kind::Sandbox),
        "template" => Some(Kind::Template),
        "name" if help == "Name of the template" => Some(Kind::Template),
        "paths" => Some(Kind::Location),
        _ => None,
    }
}

fn sandboxes(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let all = ask(async |client: &Client| client.list_all(&ListFilter::default()).await);
    let candidates = all.iter().flat_map(|sandbox| {
        let names = [sandbox.alias.as_ref(), Some(&sandbox.sandbox_id)];
        let name = names
            .into_iter()
            .flatten()
            .find(|name| name.starts_with(&*typed));
        name.map(|name| {
            CompletionCandidate::new(name).help(Some(status(sandbox).to_owned().into()))
        })
    });
    candidates.collect()
}

fn templates(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let all = ask(async |client: &Client| client.templates().await);
    let names = all.into_iter().map(|template| template.name);
    let names = names.filter(|name| name.starts_with(&*typed));
    names.map(CompletionCandidate::new).collect()
}

fn locations(typed: &OsStr) -> Vec<CompletionCandidate> {
    let mut all = PathCompleter::any().complete(typed);
    if !typed.to_string_lossy().contains(['/', ':']) {
        all.extend(sandboxes(typed).into_iter().map(|sandbox| {
            let mut value = sandbox.get_value().to_owned();
            value.push(":");
            CompletionCandidate::new(value)
        }));
    }
    all
}

/// Asks the server for a list; empty if it does not answer.
fn ask<T>(request: impl AsyncFnOnce(&Client) -> sandyard_client::Result<Vec<T>>) -> Vec<T> {
    let Ok(client) = Global::default().client() else {
        return Vec::new();
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else {
        return Vec::new();
    };
    let answer = runtime.block_on(async { tokio::time::timeout(TIMEOUT, request(&client)).await });
    answer.ok().and_then(Result::ok).unwrap_or_default()
}
