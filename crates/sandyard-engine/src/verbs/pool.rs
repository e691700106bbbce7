//! Ready sandboxes: made before anybody asks, so that a create is an adoption.
//!
//! A spare is an ordinary sandbox with a mark in `spares/`, named after it and holding its key. Whoever removes the mark has
//! it. It has never run anything of a user's.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use sandyard_core::SandboxId;
use sandyard_template::Template;

use super::create;
use crate::context::Context;
use crate::error::{EngineError, ErrorKind, Result};
use crate::protocol::PoolSpec;
use crate::random;
use crate::record::Record;
use crate::spec::{SandboxInfo, SandboxSpec};
use crate::sys::Doing;
use crate::sys::lock::Lock;
use crate::sys::process::ProcessKey;

/// How long a spare's agent may take to learn who it is.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long to wait for somebody else who is filling the pool.
const FILL_PATIENCE: Duration = Duration::from_secs(60);

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
    let key = key(
        &create::find_template(ctx, &spec.template)?,
        spec.limits.disk_bytes,
    );
    for mark in marks {
        if fs::read_to_string(mark.path()).is_ok_and(|text| text == key)
            && fs::remove_file(mark.path()).is_ok()
        {
            let Some(id) = mark.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            match adopt(ctx, &id, spec, owner) {
                Ok(info) => return Ok(Some(info)),
                // It died while waiting: another one, or a new one.
                Err(_) => super::delete::delete(ctx, &id)?,
            }
        }
    }
    Ok(None)
}

/// Makes as many spares as are missing.
pub(crate) fn fill(ctx: &Context) -> Result<()> {
    // One at a time, or two would each make what is missing.
    let path = ctx.data.pool_lock();
    let Some(_lock) = Lock::take(&path, FILL_PATIENCE).doing("lock", path.display())? else {
        return Ok(());
    };
    for wanted in settings(ctx) {
        let spec = SandboxSpec {
            template: wanted.template.clone(),
            limits: wanted.limits.clone(),
            ..SandboxSpec::default()
        };
        create::check(ctx, &spec)?;
        let key = key(
            &create::find_template(ctx, &spec.template)?,
            spec.limits.disk_bytes,
        );
        for _ in count_keyed(ctx, &key)?..wanted.count {
            let info = create::make(ctx, spec.clone(), None, None)?;
            let mark = ctx.data.spares().join(info.id.as_str());
            fs::write(&mark, &key).doing("write", mark.display())?;
        }
    }
    Ok(())
}

/// Says what to keep ready from now on, and fills up.
pub(crate) fn set(ctx: &Context, pool: &[PoolSpec]) -> Result<()> {
    let path = ctx.data.pool_settings();
    let text = serde_json::to_vec(pool)
        .map_err(|error| EngineError::failed("writing the pool", &error))?;
    let temporary = path.with_extension("new");
    fs::write(&temporary, text).doing("write", temporary.display())?;
    fs::rename(&temporary, &path).doing("write", path.display())?;
    remove_surplus(ctx)?;
    fill(ctx)
}

/// Deletes ready ones that are no longer asked for.
fn remove_surplus(ctx: &Context) -> Result<()> {
    let mut wanted = BTreeMap::new();
    for kind in settings(ctx) {
        let template = create::find_template(ctx, &kind.template)?;
        *wanted
            .entry(key(&template, kind.limits.disk_bytes))
            .or_insert(0) += kind.count;
    }
    let folder = ctx.data.spares();
    for mark in fs::read_dir(&folder)
        .doing("list", folder.display())?
        .flatten()
    {
        let kept = fs::read_to_string(mark.path())
            .ok()
            .and_then(|key| wanted.get_mut(&key).filter(|left| **left > 0));
        match (
            kept,
            mark.file_name().to_str().and_then(|name| name.parse().ok()),
        ) {
            (Some(left), _) => *left -= 1,
            // Whoever removes the mark has it: nobody else can be taking it.
            (None, Some(id)) if fs::remove_file(mark.path()).is_ok() => {
                super::delete::delete(ctx, &id)?
            }
            (None, _) => {}
        }
    }
    Ok(())
}

/// How many are ready.
pub(crate) fn count(ctx: &Context) -> Result<usize> {
    let folder = ctx.data.spares();
    Ok(fs::read_dir(&folder)
        .doing("list", folder.display())?
        .count())
}

/// What is asked to be kept ready.
pub(crate) fn settings(ctx: &Context) -> Vec<PoolSpec> {
    fs::read(ctx.data.pool_settings())
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok())
        .unwrap_or_default()
}

fn count_keyed(ctx: &Context, key: &str) -> Result<usize> {
    let folder = ctx.data.spares();
    let marks = fs::read_dir(&folder)
        .doing("list", folder.display())?
        .flatten();
    Ok(marks
        .filter(|mark| fs::read_to_string(mark.path()).is_ok_and(|text| text == key))
        .count())
}

/// Everything of a sandbox that cannot be changed once it runs.
fn key(template: &Template, disk_bytes: u64) -> String {
    let layers: Vec<String> = template
        .parts
        .iter()
        .flat_map(|part| &part.layers)
        .map(|path| path.display().to_string())
        .collect();
    format!("{} {disk_bytes} {}", template.name, layers.join(":"))
}

fn adopt(
    ctx: &Context,
    id: &SandboxId,
    spec: &SandboxSpec,
    owner: Option<ProcessKey>,
) -> Result<SandboxInfo> {
    let mut open = ctx.open(id)?;
    let record = &mut open.record;
    record.spec = spec.clone();
    record.spec.access_token = Some(spec.access_token.clone().map_or_else(random::token, Ok)?);
    record.owner = owner.filter(|_| spec.ephemeral);
    record.created_ms = crate::clock::now_ms();
    let cgroup = ctx
        .cgroups
        .open(id.as_str())
        .map_err(|error| EngineError::failed("opening the cgroup", &error))?;
    cgroup
        .apply(&spec.limits)
        .map_err(|error| EngineError::failed("changing limits", &error))?;
    introduce(ctx, record)?;
    record.write(&open.dir)?;
    Ok(open.record.info())
}

/// Tells the agent who it now works for.
fn introduce(ctx: &Context, record: &Record) -> Result<()> {
    let body = serde_json::json!({
        "envVars": record.spec.env,
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
