//! `sandyard restore`: a new data directory from a backup.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::{Value, json};

use super::{
    DATABASE, FORMAT, MANIFEST, Manifest, archive, check_space, checked_data_dir, staging,
};
use crate::global::Global;
use crate::output::{self, Format};

#[derive(Debug, Args)]
#[command(
    after_help = "Run it as root, with `--data-dir DIR` for another directory than /var/lib/sandyard. The directory must not exist or be empty. Then start the server \
there: sandboxes that were running or paused are stopped, and start with their next request.

The restored directory is the same installation with the same keys: end the old server for good before you start the new one."
)]
pub(crate) struct RestoreArgs {
    /// Backup that `sandyard backup` wrote
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    format: Format,
}

/// Restores a backup.
pub(crate) async fn restore(global: &Global, args: &RestoreArgs) -> anyhow::Result<ExitCode> {
    let data_dir = checked_data_dir(global)?;
    check_empty(&data_dir)?;
    let manifest = read_manifest(&args.file)?;
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&data_dir)
        .with_context(|| format!("creating `{}`", data_dir.display()))?;
    check_space(&data_dir, manifest.bytes)?;
    output::note(format!("restoring into {}", data_dir.display()));
    let restored =
        archive::unpack(&args.file, &data_dir).and_then(|()| adapt(&manifest, &data_dir));
    if let Err(error) = restored {
        // It was empty before.
        for entry in fs::read_dir(&data_dir)?.flatten() {
            let path = entry.path();
            let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
        }
        return Err(error);
    }
    if !manifest.has_database {
        output::note(
            "the backup has no database: restore your dump of PostgreSQL before you start the server",
        );
    }
    let sandboxes = staging::names_in(&data_dir.join("sandboxes"))?;
    let volumes = staging::names_in(&data_dir.join("volumes"))?;
    let text = format!(
        "{}  ({} sandboxes, {} volumes)",
        data_dir.display(),
        sandboxes.len(),
        volumes.len()
    );
    let answer = json!({
        "data_dir": data_dir, "has_database": data_dir.join(DATABASE).exists(), "sandboxes": sandboxes, "volumes": volumes,
    });
    args.format.print(&answer, &text)
}

fn check_empty(data_dir: &Path) -> anyhow::Result<()> {
    match fs::read_dir(data_dir).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Ok(_) if data_dir.join("installation-id").exists() => bail!(
            "`{}` is the data directory of a server; restore into another one (--data-dir), or move it away with its server ended",
            data_dir.display()
        ),
        Ok(_) => bail!(
            "`{}` is not empty; restore into another directory (--data-dir)",
            data_dir.display()
        ),
        Err(error) => Err(error).with_context(|| format!("reading `{}`", data_dir.display())),
    }
}

fn read_manifest(file: &Path) -> anyhow::Result<Manifest> {
    fs::File::open(file).with_context(|| format!("opening `{}`", file.display()))?;
    let manifest: Manifest = serde_json::from_slice(&archive::read(file, MANIFEST)?)
        .with_context(|| format!("reading the manifest of `{}`", file.display()))?;
    if manifest.format != FORMAT {
        bail!(
            "`{}` was written by sandyard {} in another format; restore it with that version",
            file.display(),
            manifest.version
        );
    }
    Ok(manifest)
}

/// Makes what was unpacked fit its new place.
fn adapt(manifest: &Manifest, data_dir: &Path) -> anyhow::Result<()> {
    fs::remove_file(data_dir.join(MANIFEST))?;
    let sandboxes = data_dir.join("sandboxes");
    for id in staging::names_in(&sandboxes)? {
        let path = sandboxes.join(id).join("state.json");
        let text = fs::read(&path).with_context(|| format!("reading `{}`", path.display()))?;
        let mut record: Value = serde_json::from_slice(&text)?;
        move_paths(&mut record["template"], &manifest.data_dir, data_dir);
        // Written over the file, whose mode it keeps.
        fs::write(&path, serde_json::to_vec(&record)?)?;
    }
    Ok(())
}

/// Replaces the old data directory in paths by the new one.
fn move_paths(value: &mut Value, old: &Path, new: &Path) {
    match value {
        Value::String(text) => {
            if let Ok(rest) = Path::new(text.as_str()).strip_prefix(old) {
                *text = new.join(rest).to_string_lossy().into_owned();
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|one| move_paths(one, old, new)),
        Value::Object(values) => values
            .values_mut()
            .for_each(|one| move_paths(one, old, new)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_below_the_old_directory_move() {
        let mut record =
            json!({"layers": ["/data/layers/a/tree", "/usr", "/database"], "key": "root"});
        move_paths(&mut record, Path::new("/data"), Path::new("/new"));
        let expected =
            json!({"layers": ["/new/layers/a/tree", "/usr", "/database"], "key": "root"});
        assert_eq!(record, expected);
    }

    #[test]
    fn a_directory_with_anything_in_it_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        check_empty(folder.path()).unwrap();
        check_empty(&folder.path().join("missing")).unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        assert!(check_empty(folder.path()).is_err());
    }
}
