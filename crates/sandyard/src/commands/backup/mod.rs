//! `sandyard backup`: everything in a data directory in one file, while the server runs.
//!
//! The file is an archive of `tar(1)` with holes kept. What changes is copied one at a time to `<data>/backup` and taken from there:
//! the database by SQLite, sandboxes and volumes by the launcher, which freezes who writes to them. Layers come last, since
//! what was copied before names them.

mod archive;
pub(crate) mod restore;
mod staging;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;
use sandyard_core::SandboxState;
use sandyard_core::size::Size;
use sandyard_engine::{Engine, EngineError, ErrorKind};
use sandyard_store::{copy_sqlite, sqlite_file};
use serde::{Deserialize, Serialize};
use serde_json::json;

use self::archive::Archive;
use self::staging::{Staging, allocated_bytes};
use super::settings::SettingFlags;
use crate::global::Global;
use crate::output::{self, Format};

/// The name of the manifest in the archive.
const MANIFEST: &str = "backup.json";
/// Version of the archive's layout.
const FORMAT: u32 = 1;
/// The database in the archive.
const DATABASE: &str = "sandyard.db";
/// What does not change, or only as a whole. Not the pool, sockets, and what belongs to this boot.
const SETTINGS: [&str; 9] = [
    "installation-id",
    "settings.json",
    "admin.key",
    "secrets.key",
    "tls",
    "gateway",
    "nodes/place",
    "logs",
    "templates",
];

/// What the archive says about itself.
#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    format: u32,
    /// Version of the program that wrote it.
    version: String,
    /// Where the data directory was: records of sandboxes name layers by their paths.
    data_dir: PathBuf,
    /// Space that its content needs on a disk.
    bytes: u64,
    /// Whether the database is in it.
    has_database: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Run it as root on the server's host. The server may run. A running sandbox is frozen while its disk is copied, and so are the sandboxes \
that use a volume while that is copied; nothing is lost, and connections stay open. Memory and processes are not in a backup: after `sandyard restore`, \
sandboxes that were running or paused are stopped.

Not included: a PostgreSQL database (use pg_dump), and sandboxes of other providers than the embedded one. The file holds keys and secrets."
)]
pub(crate) struct BackupArgs {
    /// New file, or an existing directory for a file named after the time
    #[arg(value_name = "FILE_OR_DIRECTORY")]
    target: PathBuf,
    #[command(flatten)]
    format: Format,
}

/// One sandbox or volume in the backup.
#[derive(Debug, Serialize)]
struct Copied {
    id: String,
    /// For how long it, or those that use it, were frozen.
    frozen_ms: usize,
}

/// Writes a backup.
pub(crate) async fn backup(global: &Global, args: &BackupArgs) -> anyhow::Result<ExitCode> {
    let data_dir = checked_data_dir(global)?;
    if !data_dir.join("installation-id").exists() {
        bail!(
            "`{}` is not a data directory with sandboxes",
            data_dir.display()
        );
    }
    let file = target_file(&args.target)?;
    let database = database(global)?;
    let bytes = needed_bytes(&data_dir, database.as_deref())?;
    check_space(file.parent().unwrap_or(Path::new("/")), bytes)?;
    let engine = global.engine().await?;
    let staging = Staging::begin(&data_dir)?;
    let mut archive = Archive::create(&file)?;
    let manifest = Manifest {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        data_dir: data_dir.clone(),
        bytes,
        has_database: database.is_some(),
    };
    std::fs::write(
        staging.path(MANIFEST),
        serde_json::to_vec_pretty(&manifest)?,
    )?;
    archive.add(staging.root(), &[MANIFEST.to_owned()])?;
    if let Some(database) = &database {
        // First: a sandbox that is made from now on is not in it, and one that is deleted from now on is only missing.
        copy_sqlite(database, &staging.path(DATABASE)).await?;
        archive.add(staging.root(), &[DATABASE.to_owned()])?;
    }
    archive.add_existing(&data_dir, &SETTINGS)?;
    let (sandboxes, volumes) = copy_disks(&engine, &data_dir, &staging, &mut archive).await?;
    archive.add_existing(&data_dir, &["layers"])?;
    let size = archive.finish()?;
    drop(staging);
    if database.is_none() {
        output::note("not included: the database, which is not a file. Dump it with pg_dump");
    }
    let text = format!(
        "{}  ({}, {} sandboxes, {} volumes)",
        file.display(),
        Size(size),
        sandboxes.len(),
        volumes.len()
    );
    let answer = json!({
        "file": file, "bytes": size, "has_database": database.is_some(), "sandboxes": sandboxes, "volumes": volumes,
    });
    args.format.print(&answer, &text)
}

/// The data directory, for root alone: others can neither read all files nor keep their owners.
fn checked_data_dir(global: &Global) -> anyhow::Result<PathBuf> {
    if !rustix::process::geteuid().is_root() {
        bail!(
            "only root can back up and restore: files of sandboxes belong to many users. Try it with sudo"
        );
    }
    archive::check_program()?;
    std::path::absolute(global.data_dir()).context("resolving the data directory")
}

/// The file to write.
fn target_file(target: &Path) -> anyhow::Result<PathBuf> {
    let target = std::path::absolute(target)?;
    if target.is_dir() {
        let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
        return Ok(target.join(format!("sandyard-{now}.tar")));
    }
    if target.exists() {
        bail!(
            "`{}` exists; choose another name or delete it",
            target.display()
        );
    }
    Ok(target)
}

/// The file of the database that the settings name; none for PostgreSQL.
fn database(global: &Global) -> anyhow::Result<Option<PathBuf>> {
    let loaded = SettingFlags::default().load(global)?;
    let file = sqlite_file(loaded.settings.database_url.expose())?;
    Ok(file.filter(|file| file.exists()))
}

/// Space on a disk that all of it needs.
fn needed_bytes(data_dir: &Path, database: Option<&Path>) -> anyhow::Result<u64> {
    let parts = SETTINGS.iter().chain(&["layers", "sandboxes", "volumes"]);
    let paths = parts.map(|name| data_dir.join(name));
    let all = paths.chain(database.map(Path::to_owned));
    Ok(all.map(|path| allocated_bytes(&path)).sum())
}

/// Refuses before the work what would fill the disk.
fn check_space(folder: &Path, needed: u64) -> anyhow::Result<()> {
    let space = rustix::fs::statvfs(folder)
        .with_context(|| format!("reading the free space of `{}`", folder.display()))?;
    let free = space.f_bavail * space.f_frsize;
    if free < needed {
        bail!(
            "`{}` has {} free, and {} are needed",
            folder.display(),
            Size(free >> 20 << 20),
            Size((needed >> 20 << 20) + (1 << 20))
        );
    }
    Ok(())
}

/// Copies sandboxes, then volumes.
async fn copy_disks(
    engine: &Engine,
    data_dir: &Path,
    staging: &Staging,
    archive: &mut Archive,
) -> anyhow::Result<(Vec<Copied>, Vec<Copied>)> {
    let infos = engine.list().await?;
    // Spares of the pool belong to nobody.
    let included = infos.iter().filter(|info| {
        let states = [
            SandboxState::Running,
            SandboxState::Paused,
            SandboxState::Stopped,
        ];
        let is_spare = data_dir.join("spares").join(info.id.as_str()).exists();
        states.contains(&info.state) && !info.ephemeral && !is_spare
    });
    let included: Vec<_> = included.collect();
    let volumes = staging::names_in(&data_dir.join("volumes"))?;
    let total = included.len() + volumes.len();
    let mut batch = staging.batch();
    let mut copied = (Vec::new(), Vec::new());
    for (number, info) in included.iter().enumerate() {
        let label = format!("[{}/{total}] sandbox {}", number + 1, info.id);
        let Some(frozen_ms) = existing(engine.backup_sandbox(&info.id).await, &label)? else {
            continue;
        };
        batch.add(archive, format!("sandboxes/{}", info.id))?;
        let id = info.id.to_string();
        copied.0.push(Copied { id, frozen_ms });
    }
    for (number, id) in volumes.iter().enumerate() {
        let label = format!("[{}/{total}] volume {id}", included.len() + number + 1);
        let Some(frozen_ms) = existing(engine.backup_volume(id).await, &label)? else {
            continue;
        };
        batch.add(archive, format!("volumes/{id}"))?;
        let id = id.clone();
        copied.1.push(Copied { id, frozen_ms });
    }
    batch.flush(archive)?;
    Ok(copied)
}

/// Reports a copy; none if what was to be copied has been deleted meanwhile.
fn existing(copied: Result<usize, EngineError>, label: &str) -> anyhow::Result<Option<usize>> {
    match copied {
        Ok(ms) => {
            output::note(match ms {
                0 => label.to_owned(),
                _ => format!("{label}: frozen for {ms} ms while it was copied"),
            });
            Ok(Some(ms))
        }
        Err(error) if error.kind == ErrorKind::NotFound => {
            output::note(format!("{label}: deleted meanwhile"));
            Ok(None)
        }
        Err(error) => Err(error).with_context(|| label.to_owned()),
    }
}
