//! The pool of ready sandboxes. A create that fits one adopts it instead of making a new one.
//!
//! A spare is an ordinary sandbox that has never run anything of a user's. A mark in `spares/`, named after its id, holds its key:
//! all that cannot be changed once it runs. While a spare is made, adopted or deleted, its lock is held and its mark is empty,
//! which needs no room on a full disk. So a worker that is killed half-way leaves a mark, and the next sweep finds it.
//!
//! A worker reads the mark under the lock and before the record. The record may belong to a user by then and hold secrets, and a
//! process that fills the pool becomes the first process of other sandboxes: it must not have read them.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
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
use crate::sys::OperationExt;
use crate::sys::lock::Lock;
use crate::sys::process::ProcessKey;
use crate::sys::socket::shortened;
use crate::trust;

/// How long a spare's agent may take to answer an adoption. On a host so busy that it takes longer, a new sandbox would too.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long an adoption waits for a worker that has the spare's lock, such as a sweep.
const TAKE_TIMEOUT: Duration = Duration::from_millis(500);
/// How long a deletion waits for that lock.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a change of the pool waits for a worker that fills it.
const FILL_TIMEOUT: Duration = Duration::from_secs(60);
/// The same for a sweep, which is repeated anyway.
const SWEEP_TIMEOUT: Duration = Duration::from_secs(1);
/// How long pool settings are valid. Servers repeat them every twenty seconds. If a server is killed and does not come back, its
/// spares must not wait for ever.
const SETTINGS_VALID_FOR: Duration = Duration::from_secs(300);

/// Takes a ready sandbox that fits, if there is one.
pub(crate) fn take(
    ctx: &Context,
    spec: &SandboxSpec,
    owner: Option<ProcessKey>,
) -> Result<Option<SandboxInfo>> {
    let folder = ctx.data.spares();
    let mut marks = fs::read_dir(&folder)
        .operation("list", folder.display())?
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
        if !mark_is(&mark.path(), &key) {
            continue;
        }
        match adopt(ctx, &id, &key, spec, owner) {
            Ok(Some(info)) => return Ok(Some(info)),
            // Another worker has adopted it.
            Ok(None) => {}
            // It died while it waited. If it cannot be deleted now, a sweep does so later.
            Err(_) => drop(discard(ctx, &id, TAKE_TIMEOUT, Path::exists)),
        }
    }
    Ok(None)
}

/// Makes missing spares and deletes surplus ones. Returns at once if another worker is filling the pool: the launcher calls this
/// again and again, and workers must not pile up.
pub(crate) fn fill(ctx: &Context) -> Result<()> {
    let path = ctx.data.pool_lock();
    match Lock::try_take(&path).operation("lock", path.display())? {
        Some(_lock) => fill_locked(ctx),
        None => Ok(()),
    }
}

/// Changes what is kept ready, and fills the pool.
///
/// The settings are written first: the client may go away before the pool is filled, and the launcher then fills it.
pub(crate) fn set(ctx: &Context, pool: &[PoolSpec]) -> Result<()> {
    write_settings(ctx, pool)?;
    match lock(ctx.data.pool_lock())? {
        Some(_lock) => fill_locked(ctx),
        None => Err(busy()),
    }
}

/// Under a lock, since all writers use the same temporary file.
fn write_settings(ctx: &Context, pool: &[PoolSpec]) -> Result<()> {
    let path = ctx.data.pool_settings();
    let _lock = lock(ctx.data.pool_settings_lock())?.ok_or_else(busy)?;
    if pool.is_empty() {
        // Removing works on a full disk too, where nothing can be written.
        return match fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => Ok(removed.operation("remove", path.display())?),
        };
    }
    let text = serde_json::to_vec(pool)
        .map_err(|error| EngineError::failed("writing the pool", &error))?;
    let temporary = path.with_extension("new");
    fs::write(&temporary, text).operation("write", temporary.display())?;
    Ok(fs::rename(&temporary, &path).operation("write", path.display())?)
}

fn lock(path: PathBuf) -> Result<Option<Lock>> {
    Ok(Lock::take(&path, FILL_TIMEOUT).operation("lock", path.display())?)
}

fn busy() -> EngineError {
    EngineError::new(ErrorKind::Busy, "another worker is filling the pool").hint("try again")
}

/// Needs the lock of the pool, or two workers would each make what is missing.
fn fill_locked(ctx: &Context) -> Result<()> {
    // A kind that cannot be made must not keep the others from being ready. The first failure is returned.
    let mut outcome = remove_surplus(ctx);
    let mut goals = BTreeMap::new();
    for kind in settings(ctx) {
        let filled = fill_kind(ctx, &kind, &mut goals);
        outcome = outcome.and(filled);
    }
    outcome
}

/// Makes the missing spares of one kind: none while its template does not exist. `goals` adds up the counts of kinds with the
/// same key.
fn fill_kind(ctx: &Context, kind: &PoolSpec, goals: &mut BTreeMap<String, usize>) -> Result<()> {
    let template = match create::find_template(ctx, &kind.template) {
        Err(error) if error.kind == ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    let spec = SandboxSpec {
        template: kind.template.clone(),
        limits: kind.limits.clone(),
        ..SandboxSpec::default()
    };
    create::check(ctx, &spec)?;
    let key = key(ctx, &template, spec.limits.disk_bytes);
    let goal = goals.entry(key.clone()).or_default();
    *goal += kind.count;
    let existing = keys(ctx)?.iter().filter(|other| **other == key).count();
    for _ in existing..*goal {
        // The settings have changed, and the client that changed them waits for us.
        if !settings(ctx).contains(kind) {
            break;
        }
        add(ctx, &spec, &key)?;
    }
    Ok(())
}

/// Says whether the number of spares differs from the settings. Kinds whose template does not exist do not count.
pub(crate) fn needs_filling(ctx: &Context) -> bool {
    let can_be_made = |kind: &PoolSpec| {
        kind.template == DEFAULT_TEMPLATE
            || matches!(ctx.templates.get(&kind.template), Ok(Some(_)))
    };
    let kind: usize = settings(ctx)
        .iter()
        .filter(|kind| can_be_made(kind))
        .map(|kind| kind.count)
        .sum();
    // A spare with an empty mark is unusable and must be deleted.
    keys(ctx).is_ok_and(|keys| keys.len() != kind || keys.iter().any(String::is_empty))
}

/// Makes one. Its mark comes first, so that it belongs to the pool at every moment of its life.
fn add(ctx: &Context, spec: &SandboxSpec, key: &str) -> Result<()> {
    let id = SandboxId::from_random(random::bytes()?);
    let mark = ctx.data.spares().join(id.as_str());
    clear_mark(&mark)?;
    let made = create::make_with_id(ctx, id.clone(), spec.clone(), None, None)
        .and_then(|_| Ok(fs::write(&mark, key).operation("write", mark.display())?));
    if made.is_err() {
        let _ = discard(ctx, &id, DISCARD_TIMEOUT, Path::exists);
    }
    made
}

/// Deletes a spare if `is_right` accepts its mark. The mark is removed last, so that a failed deletion is repeated.
fn discard(
    ctx: &Context,
    id: &SandboxId,
    timeout: Duration,
    is_right: impl Fn(&Path) -> bool,
) -> Result<()> {
    let mark = ctx.data.spares().join(id.as_str());
    match claim(ctx, id, timeout, is_right) {
        Ok(None) => return Ok(()),
        Ok(Some(locked)) => match locked.open() {
            Ok(open) => return delete::delete_recorded(ctx, &open.dir, open.record),
            // Its record cannot be read.
            Err(_) => delete::delete_unrecorded(ctx, id)?,
        },
        // It was never made, or is deleted already.
        Err(error) if error.kind == ErrorKind::NotFound => delete::delete_unrecorded(ctx, id)?,
        Err(error) => return Err(error),
    }
    // If this fails, the next sweep does it.
    let _ = fs::remove_file(&mark);
    Ok(())
}

/// Deletes spares that are stopped or were never finished.
pub(crate) fn sweep(ctx: &Context) -> Result<()> {
    // Without the lock, a spare that is being made would look like one that was never finished.
    let path = ctx.data.pool_lock();
    let Some(_lock) = Lock::take(&path, SWEEP_TIMEOUT).operation("lock", path.display())? else {
        return Ok(());
    };
    let mut outcome = Ok(());
    for id in list::ids_in(&ctx.data.spares())? {
        let record = Record::read(&ctx.data.sandbox(&id));
        let runs =
            matches!(record, Ok(Some(record)) if record.observed_state() == SandboxState::Running);
        let mark = fs::read_to_string(ctx.data.spares().join(id.as_str()));
        if !runs || mark.is_ok_and(|key| key.is_empty()) {
            outcome = outcome.and(discard(ctx, &id, TAKE_TIMEOUT, Path::exists));
        }
    }
    outcome
}

/// Empties a mark: its sandbox cannot be adopted.
fn clear_mark(mark: &Path) -> Result<()> {
    fs::File::create(mark).operation("write", mark.display())?;
    Ok(())
}

fn mark_is(mark: &Path, key: &str) -> bool {
    fs::read_to_string(mark).is_ok_and(|text| text == key)
}

/// Deletes spares that the settings no longer ask for. [`sweep`] deletes those with an empty mark, which may have met a user.
fn remove_surplus(ctx: &Context) -> Result<()> {
    let mut goals = BTreeMap::new();
    for kind in settings(ctx) {
        // No spares are wanted of a template that does not exist or cannot be read.
        let Ok(template) = create::find_template(ctx, &kind.template) else {
            continue;
        };
        *goals
            .entry(key(ctx, &template, kind.limits.disk_bytes))
            .or_insert(0) += kind.count;
    }
    let mut outcome = Ok(());
    for id in list::ids_in(&ctx.data.spares())? {
        let Ok(key) = fs::read_to_string(ctx.data.spares().join(id.as_str())) else {
            continue;
        };
        match goals.get_mut(&key).filter(|goal| **goal > 0) {
            Some(goal) => *goal -= 1,
            None if key.is_empty() => {}
            None => {
                let deleted = discard(ctx, &id, DISCARD_TIMEOUT, |mark| mark_is(mark, &key));
                outcome = outcome.and(deleted);
            }
        }
    }
    outcome
}

/// How many are ready.
pub(crate) fn count(ctx: &Context) -> Result<usize> {
    Ok(keys(ctx)?.iter().filter(|key| !key.is_empty()).count())
}

/// The keys in all marks.
fn keys(ctx: &Context) -> Result<Vec<String>> {
    let folder = ctx.data.spares();
    let marks = fs::read_dir(&folder)
        .operation("list", folder.display())?
        .flatten();
    Ok(marks
        .filter_map(|mark| fs::read_to_string(mark.path()).ok())
        .collect())
}

/// What to keep ready, as the servers have asked.
pub(crate) fn settings(ctx: &Context) -> Vec<PoolSpec> {
    let path = ctx.data.pool_settings();
    if clock::age(&path).is_some_and(|age| age > SETTINGS_VALID_FOR) {
        return Vec::new();
    }
    fs::read(path)
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok())
        .unwrap_or_default()
}

/// All of a sandbox that cannot be changed once it runs, as one text.
fn key(ctx: &Context, template: &Template, disk_bytes: u64) -> String {
    let layers: Vec<String> = template
        .parts
        .iter()
        .flat_map(|part| &part.layers)
        .map(|path| path.display().to_string())
        .collect();
    let trusted = trust::fingerprint(&ctx.data);
    // The first process is a fork of the launcher that made it, and has the tool server of that launcher.
    let tools = ctx.tools.map_or(0, |tools| tools.port);
    format!(
        "{} {disk_bytes} {} {trusted} {tools} {} {VERSION}",
        template.name,
        layers.join(":"),
        ctx.identity
    )
}

/// Locks a spare whose mark `is_right`, and empties the mark. `None`: another worker has claimed it.
fn claim(
    ctx: &Context,
    id: &SandboxId,
    timeout: Duration,
    is_right: impl Fn(&Path) -> bool,
) -> Result<Option<LockedSandbox>> {
    let mark = ctx.data.spares().join(id.as_str());
    let deadline = Instant::now() + timeout;
    while is_right(&mark) {
        match ctx.lock(id, Duration::ZERO)? {
            Some(locked) if is_right(&mark) => {
                clear_mark(&mark)?;
                return Ok(Some(locked));
            }
            _ if Instant::now() >= deadline => break,
            _ => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    Ok(None)
}

/// Gives a spare to a caller. `None`: another worker has claimed it.
fn adopt(
    ctx: &Context,
    id: &SandboxId,
    key: &str,
    spec: &SandboxSpec,
    owner: Option<ProcessKey>,
) -> Result<Option<SandboxInfo>> {
    let mark = ctx.data.spares().join(id.as_str());
    let Some(locked) = claim(ctx, id, TAKE_TIMEOUT, |mark| mark_is(mark, key))? else {
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
    configure_agent(ctx, record)?;
    record.write(&open.dir)?;
    // Last: a sweep deletes every spare that has a mark.
    fs::remove_file(&mark).operation("remove", mark.display())?;
    Ok(Some(open.record.info()))
}

/// Sends the agent its variables, token and host name.
fn configure_agent(ctx: &Context, record: &Record) -> Result<()> {
    let body = serde_json::json!({
        "envVars": record.environment(),
        "accessToken": record.spec.access_token,
        "hostname": record.spec.hostname,
    })
    .to_string();
    let exchange = || -> std::io::Result<Vec<u8>> {
        let (_folder, short) = shortened(&ctx.data.agent_socket(&record.id))?;
        let mut stream = UnixStream::connect(short)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
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
        exchange().map_err(|error| EngineError::failed("configuring the agent", &error))?;
    if status.starts_with(b"HTTP/1.1 2") {
        return Ok(());
    }
    Err(EngineError::new(
        ErrorKind::Failed,
        format!(
            "the agent refused its configuration: {:?}",
            String::from_utf8_lossy(&status)
        ),
    ))
}
