//! Serves one connection: one request after another, each in a process of its own.
//!
//! The process that reads a request may become the first process of a sandbox, and root in that sandbox can read its memory. So it
//! must never have read another request: specs hold secrets of other sandboxes. The worker itself reads nothing from the
//! connection.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::net::RecvFlags;
use rustix::net::sockopt::socket_peercred;
use rustix::process::Signal;
use sandyard_core::SandboxId;

use super::run_and_leave;
use crate::context::Context;
use crate::error::{EngineError, ErrorKind, Result};
use crate::frame::{FrameReader, read_frame, write_frame};
use crate::identity::VERSION;
use crate::mode::Mode;
use crate::protocol::{Answer, GENERATION, Hello, MAX_REQUEST, Reply, Request};
use crate::spec::SandboxInfo;
use crate::sys::clone::clone_into_namespaces;
use crate::sys::process::{ProcessKey, wait_ended};
use crate::verbs::{
    backup, create, delete, diff, fork, import, list, pause, pool, resume, snapshot, start, stats,
    stop, sweep, volume,
};

/// The process of a request reports to the worker in lines: `+ID` delete this sandbox with the connection, `-ID` no longer, and
/// last this line if the connection can be used for another request.
const GO_ON: &str = "ok";
/// What the kernel shows for a user without an id in a user namespace.
const OVERFLOW_UID: u32 = 65_534;
/// Longer than any request takes: the wait has no other end.
const A_YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// Serves until the client closes the connection, and then deletes its ephemeral sandboxes.
pub(super) fn serve(ctx: &Context, stream: UnixStream) {
    let Ok(peer) = check_peer(ctx, &stream) else {
        return;
    };
    let mut ephemeral: Vec<SandboxId> = Vec::new();
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    while has_request(&stream) {
        let Ok(notes) = serve_one(ctx, &stream, peer) else {
            break;
        };
        for line in notes.lines() {
            match (
                line.split_at_checked(1),
                line.get(1..).and_then(|id| id.parse().ok()),
            ) {
                (Some(("+", _)), Some(id)) => ephemeral.push(id),
                (Some(("-", _)), Some(id)) => ephemeral.retain(|made| *made != id),
                _ => {}
            }
        }
        if notes.lines().last() != Some(GO_ON) {
            break;
        }
        // If the launcher dies, the connection should close, so that the client connects to the next launcher; but not while this
        // worker has ephemeral sandboxes to delete.
        let signal = ephemeral.is_empty().then_some(Signal::KILL);
        let _ = rustix::process::set_parent_process_death_signal(signal);
    }
    for id in ephemeral {
        let _ = delete::delete(ctx, &id);
    }
}

/// Waits for the first byte of a request, without reading it.
fn has_request(stream: &UnixStream) -> bool {
    let mut byte = [0_u8; 1];
    loop {
        match rustix::net::recv(stream, &mut byte[..], RecvFlags::PEEK) {
            Err(rustix::io::Errno::INTR) => {}
            Ok((count, _)) => return count > 0,
            Err(_) => return false,
        }
    }
}

/// Serves one request in a new process. Returns the lines it reports.
fn serve_one(ctx: &Context, stream: &UnixStream, peer: Option<ProcessKey>) -> Result<String> {
    let (reader, writer) = std::io::pipe()?;
    // A child of the launcher, not of this worker, as is everything it starts: the launcher reaps them.
    let Some(child) = clone_into_namespaces(0, None)? else {
        drop(reader);
        run_and_leave(|| {
            serve_request(
                ctx,
                stream,
                peer,
                File::from(std::os::fd::OwnedFd::from(writer)),
            )
        });
    };
    drop(writer);
    let mut notes = String::new();
    File::from(std::os::fd::OwnedFd::from(reader)).read_to_string(&mut notes)?;
    wait_ended(&child.pidfd, A_YEAR)?;
    Ok(notes)
}

fn serve_request(
    ctx: &Context,
    mut stream: &UnixStream,
    peer: Option<ProcessKey>,
    mut notes: File,
) {
    let Ok(Some(frame)) = read_frame(&mut stream, MAX_REQUEST) else {
        return;
    };
    let answer = answer(ctx, peer, &frame, stream, &mut notes);
    let text = serde_json::to_vec(&answer).expect("answers hold no map with odd keys");
    if write_frame(&mut stream, &text).is_ok() {
        let _ = writeln!(notes, "{GO_ON}");
    }
}

/// Checks the user of the client. The socket's mode keeps others out already, unless somebody changes it.
fn check_peer(ctx: &Context, stream: &UnixStream) -> Result<Option<ProcessKey>> {
    let _ = stream.set_nonblocking(false);
    let peer = socket_peercred(stream)
        .map_err(|error| EngineError::failed("reading the credentials of the client", &error))?;
    // In a user namespace the host's root has the overflow id. The folder's mode keeps out others with that id.
    let is_hosts_root =
        matches!(ctx.mode, Mode::Subordinate { .. }) && peer.uid.as_raw() == OVERFLOW_UID;
    if !peer.uid.is_root() && peer.uid != rustix::process::geteuid() && !is_hosts_root {
        return Err(EngineError::new(
            ErrorKind::Unsupported,
            "the launcher serves only its own user and root",
        ));
    }
    Ok(ProcessKey::of(peer.pid.as_raw_nonzero().get()))
}

fn answer(
    ctx: &Context,
    peer: Option<ProcessKey>,
    frame: &[u8],
    mut stream: &UnixStream,
    notes: &mut File,
) -> Answer {
    let request = serde_json::from_slice(frame).map_err(|error| {
        EngineError::new(ErrorKind::Invalid, format!("invalid request: {error}"))
    })?;
    let one = |info: SandboxInfo| Reply::Sandbox(Box::new(info));
    match request {
        Request::Hello => Ok(Reply::Hello(hello(ctx))),
        Request::Create { spec, fault } => {
            let ephemeral = spec.ephemeral;
            let info = create::create(ctx, *spec, peer, fault)?;
            if ephemeral && let Err(error) = writeln!(notes, "+{}", info.id) {
                // The worker has died, so nobody would delete it later.
                delete::delete(ctx, &info.id)?;
                return Err(error.into());
            }
            Ok(one(info))
        }
        Request::Inspect { id } => list::inspect(ctx, &id).map(one),
        Request::List => list::list(ctx).map(Reply::Sandboxes),
        Request::Pause { id } => pause::pause(ctx, &id).map(one),
        Request::Resume { id } => resume::resume(ctx, &id).map(one),
        Request::Stop { id } => stop::stop(ctx, &id).map(one),
        Request::Start { id, fault } => start::start(ctx, &id, fault).map(one),
        Request::Delete { id } => {
            delete::delete(ctx, &id)?;
            // If the worker has died, this does not matter.
            let _ = writeln!(notes, "-{id}");
            Ok(Reply::Done)
        }
        Request::Snapshot { id, name } => {
            snapshot::snapshot(ctx, &id, &name).map(|template| Reply::Template(Box::new(template)))
        }
        Request::Fork { id, spec } => fork::fork(ctx, &id, *spec, peer).map(one),
        Request::Diff { id } => diff::diff(ctx, &id).map(Reply::Diff),
        Request::Stats { id } => stats::stats(ctx, &id).map(Reply::Stats),
        Request::ListTemplates => import::templates(ctx).map(Reply::Templates),
        Request::ImportTemplate { name } => {
            let mut archive = FrameReader::new(&mut stream);
            let imported = import::import(ctx, &name, &mut archive);
            archive.drain()?;
            imported.map(|template| Reply::Template(Box::new(template)))
        }
        Request::RemoveTemplate { name } => import::remove(ctx, &name).map(|()| Reply::Done),
        Request::SetPool { pool } => pool::set(ctx, &pool).map(|()| Reply::Done),
        Request::PoolStatus => pool::count(ctx).map(Reply::Count),
        Request::CreateVolume { id, size_bytes } => {
            volume::create(ctx, &id, size_bytes).map(|()| Reply::Done)
        }
        Request::DeleteVolume { id } => volume::delete(ctx, &id).map(|()| Reply::Done),
        Request::BackupSandbox { id } => backup::sandbox(ctx, &id).map(Reply::Count),
        Request::BackupVolume { id } => backup::volume(ctx, &id).map(Reply::Count),
        Request::Sweep => sweep::sweep(ctx).map(|()| Reply::Done),
    }
}

fn hello(ctx: &Context) -> Hello {
    Hello {
        version: VERSION.to_owned(),
        generation: GENERATION,
        program: ctx.identity.clone(),
        tools_port: ctx.tools.map(|tools| tools.port),
        launcher_pid: rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get()),
        installation_id: ctx.installation_id.clone(),
        mode: ctx.mode,
        can_limit: ctx.can_limit(),
        limitations: ctx.limitations(),
        default_limits: ctx.settings.default_limits.clone(),
        max_limits: ctx.settings.max_limits.clone(),
        hard_limits: Some(ctx.settings.hard_limits.clone()),
        memory_reserve: ctx.memory.setting,
    }
}
