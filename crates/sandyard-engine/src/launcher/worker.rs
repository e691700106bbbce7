//! Serves one connection: one request after another, in a process of its own.

use std::os::unix::net::UnixStream;

use rustix::net::sockopt::socket_peercred;
use sandyard_core::SandboxId;

use crate::context::Context;
use crate::error::{EngineError, ErrorKind, Result};
use crate::protocol::{Answer, FrameReader, GENERATION, Hello, MAX_REQUEST, Reply, Request, read_frame, write_frame};
use crate::spec::SandboxInfo;
use crate::sys::process::ProcessKey;
use crate::verbs::{create, delete, diff, fork, import, list, pause, pool, resume, snapshot, start, stats, stop, sweep};

/// Serves until the client hangs up; then removes what was to live no longer than it.
pub(super) fn serve(ctx: &Context, mut stream: UnixStream) {
    let Ok(peer) = check_peer(&stream) else { return };
    let mut worker = Worker { ctx, peer, ephemeral: Vec::new() };
    while let Ok(Some(frame)) = read_frame(&mut stream, MAX_REQUEST) {
        let answer = worker.answer(&frame, &mut stream);
        let text = serde_json::to_vec(&answer).expect("answers hold no map with odd keys");
        if write_frame(&mut stream, &text).is_err() {
            break;
        }
    }
    for id in worker.ephemeral {
        let _ = delete::delete(ctx, &id);
    }
}

/// The socket's mode keeps others out already; this holds even if somebody changes it.
fn check_peer(stream: &UnixStream) -> Result<Option<ProcessKey>> {
    let _ = stream.set_nonblocking(false);
    let peer = socket_peercred(stream).map_err(|error| EngineError::failed("asking who connects", &error))?;
    if !peer.uid.is_root() && peer.uid != rustix::process::geteuid() {
        return Err(EngineError::new(ErrorKind::Unsupported, "the launcher serves its own user and root only"));
    }
    Ok(ProcessKey::of(peer.pid.as_raw_nonzero().get()))
}

struct Worker<'a> {
    ctx: &'a Context,
    peer: Option<ProcessKey>,
    /// Made on this connection, to go with it.
    ephemeral: Vec<SandboxId>,
}

impl Worker<'_> {
    fn answer(&mut self, frame: &[u8], stream: &mut UnixStream) -> Answer {
        let request = serde_json::from_slice(frame)
            .map_err(|error| EngineError::new(ErrorKind::Invalid, format!("not a request: {error}")))?;
        let ctx = self.ctx;
        let one = |info: SandboxInfo| Reply::Sandbox(Box::new(info));
        match request {
            Request::Hello => Ok(Reply::Hello(hello(ctx))),
            Request::Create { spec, fault } => {
                let ephemeral = spec.ephemeral;
                let info = create::create(ctx, *spec, self.peer, fault)?;
                if ephemeral {
                    self.ephemeral.push(info.id.clone());
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
                self.ephemeral.retain(|made| *made != id);
                Ok(Reply::Done)
            }
            Request::Snapshot { id, name } => snapshot::snapshot(ctx, &id, &name).map(|template| Reply::Template(Box::new(template))),
            Request::Fork { id, env } => fork::fork(ctx, &id, env, self.peer).map(one),
            Request::Diff { id } => diff::diff(ctx, &id).map(Reply::Changes),
            Request::Stats { id } => stats::stats(ctx, &id).map(Reply::Stats),
            Request::ListTemplates => import::templates(ctx).map(Reply::Templates),
            Request::ImportTemplate { name } => {
                let mut archive = FrameReader::new(stream);
                let imported = import::import(ctx, &name, &mut archive);
                archive.drain()?;
                imported.map(|template| Reply::Template(Box::new(template)))
            }
            Request::RemoveTemplate { name } => import::remove(ctx, &name).map(|()| Reply::Done),
            Request::SetPool { pool } => pool::set(ctx, &pool).map(|()| Reply::Done),
            Request::PoolStatus => pool::count(ctx).map(Reply::Count),
            Request::Sweep => sweep::sweep(ctx).map(|()| Reply::Done),
        }
    }
}

fn hello(ctx: &Context) -> Hello {
    Hello {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        generation: GENERATION,
        launcher_pid: rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get()),
        mode: ctx.mode,
        lacks: ctx.lacks(),
    }
}
