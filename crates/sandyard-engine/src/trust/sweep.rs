//! Removes layers that no sandbox uses.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::error::{EngineError, Result};
use crate::layout::DataDir;
use crate::sys::OperationExt;
use crate::sys::lock::Lock;

/// Longer than a sandbox takes to start: it may use a layer and not be on record with it yet.
const MIN_AGE: Duration = Duration::from_secs(600);
/// Prefix of layers that are being removed.
const REMOVED_PREFIX: &str = ".old-";

/// Removes layers that are not in `in_use` and older than a start takes.
pub(crate) fn sweep(data: &DataDir, in_use: &BTreeSet<String>) -> Result<()> {
    sweep_older(data, in_use, MIN_AGE)
}

fn sweep_older(data: &DataDir, in_use: &BTreeSet<String>, age: Duration) -> Result<()> {
    for path in rename_unused(data, in_use, age)? {
        sandyard_template::remove_tree(&path)
            .map_err(|error| EngineError::template("removing certificates", &error))?;
    }
    Ok(())
}

/// Renames them, so that no worker finds them any more.
fn rename_unused(data: &DataDir, in_use: &BTreeSet<String>, age: Duration) -> Result<Vec<PathBuf>> {
    let Some(_lock) = Lock::try_take(&data.trust_lock()).operation("lock", "trust.lock")? else {
        // A worker is looking for one: try again at the next sweep.
        return Ok(Vec::new());
    };
    let folder = data.trust();
    let mut renamed = Vec::new();
    for entry in fs::read_dir(&folder)
        .operation("list", folder.display())?
        .flatten()
    {
        let (path, name) = (
            entry.path(),
            entry.file_name().to_string_lossy().into_owned(),
        );
        if name.starts_with(REMOVED_PREFIX) {
            renamed.push(path);
        } else if !in_use.contains(&name) && is_older(&path, age) {
            // Also one that was never finished.
            let aside = folder.join(format!("{REMOVED_PREFIX}{name}"));
            fs::rename(&path, &aside).operation("put aside", path.display())?;
            renamed.push(aside);
        }
    }
    Ok(renamed)
}

fn is_older(path: &Path, age: Duration) -> bool {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    let since = modified
        .ok()
        .and_then(|modified| SystemTime::now().duration_since(modified).ok());
    since.is_some_and(|since| since >= age)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_or_young_stays() {
        let root = tempfile::tempdir().expect("a folder");
        let data = DataDir::new(root.path().join("data"));
        data.create().expect("a data directory");
        for name in ["used", "unused", ".new-cut-off", ".old-cut-off"] {
            fs::create_dir_all(data.trust().join(name).join("tree/etc")).expect("a layer");
        }
        let in_use = BTreeSet::from(["used".to_owned()]);
        let remaining = || {
            let entries = fs::read_dir(data.trust()).expect("list").flatten();
            let mut names: Vec<_> = entries
                .map(|entry| entry.file_name().into_string().expect("UTF-8"))
                .collect();
            names.sort();
            names
        };
        sweep(&data, &in_use).expect("sweep");
        assert_eq!(remaining(), [".new-cut-off", "unused", "used"]);
        let held = Lock::share(&data.trust_lock()).expect("share");
        sweep_older(&data, &in_use, Duration::ZERO).expect("sweep");
        assert_eq!(remaining().len(), 3, "somebody is looking for one");
        drop(held);
        // A process that another test forked meanwhile has the lock until it ends.
        let end = std::time::Instant::now() + Duration::from_secs(60);
        while remaining() != ["used"] {
            assert!(std::time::Instant::now() < end, "left: {:?}", remaining());
            sweep_older(&data, &in_use, Duration::ZERO).expect("sweep");
        }
        // A link, where there is memory to keep it in.
        fs::remove_dir_all(fs::canonicalize(data.run()).expect("a folder")).expect("remove");
    }
}
