//! Ready sandboxes: made before anybody asks, so that a create is an adoption.
//!
//! A spare is an ordinary sandbox with a mark in `spares/`, named after it and holding its key. It has never run anything of a
//! user's. While it is made, taken or taken away the mark is empty, which needs no room on a full disk, and its lock is held: so
//! whoever is killed half-way leaves nothing that nobody knows of.
//!
//! The mark is looked at under the lock and before the record, which may be somebody's by then, secrets and all: whoever fills
//! the pool or makes another sandbox next must not have read it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sandyard_core::{SandboxId, SandboxState};
use sandyard_template::Template;

use super::{create, delete, list};
use crate::clock;
use crate::context::{Context, LockedSandbox};
use crate::error::{EngineError, ErrorKind, Result};
use crate::identity::VERSION;
use crate::protocol::PoolSpec;
use crate::random;
use crate::record::Record;
use crate::spec::{DEFAULT_TEMPLATE, SandboxInfo, SandboxSpec};
use crate::sys::Doing;
use crate::sys::lock::Lock;
use crate::sys::process::ProcessKey;
use crate::trust;

/// How long a spare's agent may take to learn who it is. On a host so busy that it takes long, making another takes longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a sweep may look at a spare that somebody wants.
const TAKE_PATIENCE: Duration = Duration::from_millis(500);
/// The same for one that is to go.
const DISCARD_PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait for somebody else who is filling the pool.
const FILL_PATIENCE: Duration = Duration::from_secs(60);
/// The same for a sweep, which comes again.
const SWEEP_PATIENCE: Duration = Duration::from_secs(1);
/// How long a wish for ready sandboxes holds. Servers repeat it every twenty seconds; of one that was killed and never came
/// back nobody would take it back, and its sandboxes would wait for ever.
const WISH_HOLDS: Duration = Duration::from_secs(300);

/// Takes a ready sandbox that fits, if there is one.
pub(crate) fn take(
    ctx: &Context,
    spec: &SandboxSpec,
    owner: Option<ProcessKey>,
) -> Result<Option<SandboxInfo>> {
    let folder = ctx.data.spares();
    let mut marks = fs::read_dir(&folder)
        .doing("list", folder.display())?
        .flatten()
        .peekable();
    if marks.peek().is_none() {
        return Ok(None);
    }
    let template = create::find_template(ctx, &spec.template)?;
    let key = key(ctx, &template, spec.limits.disk_bytes);
    for mark in marks {
        let Some(id) = mark.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if !says(&mark.path(), &key) {
            continue;
        }
        match adopt(ctx, &id, &key, spec, owner) {
            Ok(Some(info)) => return Ok(Some(info)),
            // Somebody was faster.
            Ok(None) => {}
            // It died while waiting: another one, or a new one. If it does not go now, then later.
            Err(_) => drop(discard(ctx, &id, TAKE_PATIENCE, Path::exists)),
        }
    }
    Ok(None)
}

/// Makes as many spares as are missing, and deletes those nobody asks for any more. Who finds somebody at it leaves: those who
/// look after the house come again, and must not become a crowd.
pub(crate) fn fill(ctx: &Context) -> Result<()> {
    let path = ctx.data.pool_lock();
    match Lock::try_take(&path).doing("lock", path.display())? {
        Some(_lock) => fill_locked(ctx),
        None => Ok(()),
    }
}

/// Says what to keep ready from now on, and sees to it.
///
/// Written down before anything is waited for: whoever asks may be gone before all is done, as a server that ends on a busy
/// host is, and then the launcher sees to it.
pub(crate) fn set(ctx: &Context, pool: &[PoolSpec]) -> Result<()> {
    write_settings(ctx, pool)?;
    match lock(ctx.data.pool_lock())? {
        Some(_lock) => fill_locked(ctx),
        None => Err(busy()),
    }
}

/// One at a time: all write the same file before it takes its place.
fn write_settings(ctx: &Context, pool: &[PoolSpec]) -> Result<()> {
    let path = ctx.data.pool_settings();
    let _lock = lock(ctx.data.pool_settings_lock())?.ok_or_else(busy)?;
    if pool.is_empty() {
        // Nothing is written, since there may be no room for it: on a full disk too this must be possible.
        return match fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => Ok(removed.doing("remove", path.display())?),
        };
    }
    let text = serde_json::to_vec(pool)
        .map_err(|error| EngineError::failed("writing the pool", &error))?;
    let temporary = path.with_extension("new");
    fs::write(&temporary, text).doing("write", temporary.display())?;
    Ok(fs::rename(&temporary, &path).doing("write", path.display())?)
}

fn lock(path: PathBuf) -> Result<Option<Lock>> {
    Ok(Lock::take(&path, FILL_PATIENCE).doing("lock", path.display())?)
}

fn busy() -> EngineError {
    EngineError::new(ErrorKind::Busy, "the pool is being filled").hint("try again")
}

/// One at a time, or two would each make what is missing.
fn fill_locked(ctx: &Context) -> Result<()> {
    // One kind that cannot be made does not keep the others from being ready. The first failure is told.
    let mut done = remove_surplus(ctx);
    let mut goals = BTreeMap::new();
    for wanted in settings(ctx) {
        let filled = fill_kind(ctx, &wanted, &mut goals);
        done = done.and(filled);
    }
    done
}

/// Makes what is missing of one kind: nothing, as long as there is no such template. `goals` adds up what is wanted of those
/// that are alike.
fn fill_kind(ctx: &Context, wanted: &PoolSpec, goals: &mut BTreeMap<String, usize>) -> Result<()> {
    let template = match create::find_template(ctx, &wanted.template) {
        Err(error) if error.kind == ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    let spec = SandboxSpec {
        template: wanted.template.clone(),
        limits: wanted.limits.clone(),
        ..SandboxSpec::default()
    };
    create::check(ctx, &spec)?;
    let key = key(ctx, &template, spec.limits.disk_bytes);
    let goal = goals.entry(key.clone()).or_default();
    *goal += wanted.count;
    let there = keys(ctx)?.iter().filter(|there| **there == key).count();
    for _ in there..*goal {
        // Somebody wants something else by now, and waits for us.
        if !settings(ctx).contains(wanted) {
            break;
        }
        add(ctx, &spec, &key)?;
    }
    Ok(())
}

/// Says whether fewer are ready than could be, or more than are wanted. What has no template yet cannot be.
pub(crate) fn is_off(ctx: &Context) -> bool {
    let can_be_made = |wanted: &PoolSpec| {
        wanted.template == DEFAULT_TEMPLATE
            || matches!(ctx.templates.get(&wanted.template), Ok(Some(_)))
    };
    let wanted: usize = settings(ctx)
        .iter()
        .filter(|wanted| can_be_made(wanted))
        .map(|wanted| wanted.count)
        .sum();
    // One that is of no use is to go, too.
    keys(ctx).is_ok_and(|keys| keys.len() != wanted || keys.iter().any(String::is_empty))
}

/// Makes one. Marked before it is there, so that it belongs to the pool at every moment of its life.
fn add(ctx: &Context, spec: &SandboxSpec, key: &str) -> Result<()> {
    let id = SandboxId::from_random(random::bytes()?);
    let mark = ctx.data.spares().join(id.as_str());
    empty(&mark)?;
    let made = create::make_named(ctx, id.clone(), spec.clone(), None, None)
        .and_then(|_| Ok(fs::write(&mark, key).doing("write", mark.display())?));
    if made.is_err() {
        let _ = discard(ctx, &id, DISCARD_PATIENCE, Path::exists);
    }
    made
}

/// Deletes one whose mark is right. The mark goes last: without one it would be nobody's, and nobody would try again.
fn discard(
    ctx: &Context,
    id: &SandboxId,
    patience: Duration,
    is_right: impl Fn(&Path) -> bool,
) -> Result<()> {
    let mark = ctx.data.spares().join(id.as_str());
    match claim(ctx, id, patience, is_right) {
        Ok(None) => return Ok(()),
        Ok(Some(locked)) => match locked.open() {
            Ok(open) => return delete::delete_recorded(ctx, &open.dir, open.record),
            // Not to be read.
            Err(_) => delete::delete_unrecorded(ctx, id)?,
        },
        // Never made, or gone.
        Err(error) if error.kind == ErrorKind::NotFound => delete::delete_unrecorded(ctx, id)?,
        Err(error) => return Err(error),
    }
    // If it does not go, somebody comes again.
    let _ = fs::remove_file(&mark);
    Ok(())
}

/// Deletes those that are gone, stopped, or were never finished.
pub(crate) fn sweep(ctx: &Context) -> Result<()> {
    // Else one that is just being made looks like one that was never finished.
    let path = ctx.data.pool_lock();
    let Some(_lock) = Lock::take(&path, SWEEP_PATIENCE).doing("lock", path.display())? else {
        return Ok(());
    };
    let mut outcome = Ok(());
    for id in list::ids_in(&ctx.data.spares())? {
        let record = Record::read(&ctx.data.sandbox(&id));
        let runs =
            matches!(record, Ok(Some(record)) if record.observed_state() == SandboxState::Running);
        let mark = fs::read_to_string(ctx.data.spares().join(id.as_str()));
        if !runs || mark.is_ok_and(|key| key.is_empty()) {
            outcome = outcome.and(discard(ctx, &id, TAKE_PATIENCE, Path::exists));
        }
    }
    outcome
}

/// Says in a mark that its sandbox is of no use, yet or any more.
fn empty(mark: &Path) -> Result<()> {
    fs::File::create(mark).doing("write", mark.display())?;
    Ok(())
}

fn says(mark: &Path, key: &str) -> bool {
    fs::read_to_string(mark).is_ok_and(|text| text == key)
}

/// Deletes ready ones that are no longer asked for. Those that are not ready are for [`sweep`], since they may know somebody.
fn remove_surplus(ctx: &Context) -> Result<()> {
    let mut wanted = BTreeMap::new();
    for kind in settings(ctx) {
        // Of a template that is gone, or cannot be read, none are wanted.
        let Ok(template) = create::find_template(ctx, &kind.template) else {
            continue;
        };
        *wanted
            .entry(key(ctx, &template, kind.limits.disk_bytes))
            .or_insert(0) += kind.count;
    }
    let mut done = Ok(());
    for id in list::ids_in(&ctx.data.spares())? {
        let Ok(key) = fs::read_to_string(ctx.data.spares().join(id.as_str())) else {
            continue;
        };
        match wanted.get_mut(&key).filter(|left| **left > 0) {
            Some(left) => *left -= 1,
            None if key.is_empty() => {}
            None => {
                let deleted = discard(ctx, &id, DISCARD_PATIENCE, |mark| says(mark, &key));
                done = done.and(deleted);
            }
        }
    }
    done
}

/// How many are ready.
pub(crate) fn count(ctx: &Context) -> Result<usize> {
    Ok(keys(ctx)?.iter().filter(|key| !key.is_empty()).count())
}

/// What the marks say.
fn keys(ctx: &Context) -> Result<Vec<String>> {
    let folder = ctx.data.spares();
    let marks = fs::read_dir(&folder)
        .doing("list", folder.display())?
        .flatten();
    Ok(marks
        .filter_map(|mark| fs::read_to_string(mark.path()).ok())
        .collect())
}

/// What is asked to be kept ready.
pub(crate) fn settings(ctx: &Context) -> Vec<PoolSpec> {
    let path = ctx.data.pool_settings();
    if clock::age(&path).is_some_and(|age| age > WISH_HOLDS) {
        return Vec::new();
    }
    fs::read(path)
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok())
        .unwrap_or_default()
}

/// Everything of a sandbox that cannot be changed once it runs.
fn key(ctx: &Context, template: &Template, disk_bytes: u64) -> String {
    let layers: Vec<String> = template
        .parts
        .iter()
        .flat_map(|part| &part.layers)
        .map(|path| path.display().to_string())
        .collect();
    let trusted = trust::fingerprint(&ctx.data);
    // Its first process is a fork of the launcher that made it, and has that one's tool server.
    let tools = ctx.tools.map_or(0, |tools| tools.port);
    format!(
        "{} {disk_bytes} {} {trusted} {tools} {} {VERSION}",
        template.name,
        layers.join(":"),
        ctx.identity
    )
}

/// Locks a spare whose mark is right, and says there that it is of no use any more. `None`: it is another's.
fn claim(
    ctx: &Context,
    id: &SandboxId,
    patience: Duration,
    is_right: impl Fn(&Path) -> bool,
) -> Result<Option<LockedSandbox>> {
    let mark = ctx.data.spares().join(id.as_str());
    let give_up = Instant::now() + patience;
    while is_right(&mark) {
        match ctx.lock(id, Duration::ZERO)? {
            Some(locked) if is_right(&mark) => {
                empty(&mark)?;
                return Ok(Some(locked));
            }
            _ if Instant::now() >= give_up => break,
            _ => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    Ok(None)
}

/// Gives a spare to whoever asked. `None`: it is another's already.
fn adopt(
    ctx: &Context,
    id: &SandboxId,
    key: &str,
    spec: &SandboxSpec,
    owner: Option<ProcessKey>,
) -> Result<Option<SandboxInfo>> {
    let mark = ctx.data.spares().join(id.as_str());
    let Some(locked) = claim(ctx, id, TAKE_PATIENCE, |mark| says(mark, key))? else {
        return Ok(None);
    };
    let mut open = locked.open()?;
    let record = &mut open.record;
    record.spec = spec.clone();
    record.spec.access_token = Some(spec.access_token.clone().map_or_else(random::token, Ok)?);
    record.owner = owner.filter(|_| spec.ephemeral);
    record.created_ms = clock::now_ms();
    let cgroup = ctx
        .cgroups
        .open(id.as_str())
        .map_err(|error| EngineError::failed("opening the cgroup", &error))?;
    cgroup
        .apply(&spec.limits)
        .map_err(|error| EngineError::failed("changing limits", &error))?;
    introduce(ctx, record)?;
    record.write(&open.dir)?;
    // From here on it is theirs: a sweep that finds the mark would take it away.
    fs::remove_file(&mark).doing("remove", mark.display())?;
    Ok(Some(open.record.info()))
}

/// Tells the agent who it now works for.
fn introduce(ctx: &Context, record: &Record) -> Result<()> {
    let body = serde_json::json!({
        "envVars": record.environment(),
        "accessToken": record.spec.access_token,
        "hostname": record.spec.hostname,
    })
    .to_string();
    let exchange = || -> std::io::Result<Vec<u8>> {
        let folder = fs::File::open(ctx.data.sandbox(&record.id).run())?;
        // By descriptor: a socket address holds 107 bytes at most.
        let mut stream =
            UnixStream::connect(format!("/proc/self/fd/{}/agent.sock", folder.as_raw_fd()))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        write!(
            stream,
            "POST /init HTTP/1.1\r\nHost: agent\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )?;
        let mut status = vec![0; 12];
        stream.read_exact(&mut status)?;
        Ok(status)
    };
    let status =
        exchange().map_err(|error| EngineError::failed("introducing the agent", &error))?;
    if status.starts_with(b"HTTP/1.1 2") {
        return Ok(());
    }
    Err(EngineError::new(
        ErrorKind::Failed,
        format!("the agent answered {:?}", String::from_utf8_lossy(&status)),
    ))
}
