//! Removes layers that no sandbox uses.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::error::{EngineError, Result};
use crate::layout::DataDir;
use crate::sys::Doing;
use crate::sys::lock::Lock;

/// Longer than a sandbox takes to start: one may have found a layer, and not be on record with it yet.
const SPARED_FOR: Duration = Duration::from_secs(600);
/// How the names of those begin that are on their way out.
const CONDEMNED: &str = ".old-";

/// Removes what is neither named in `in_use` nor young.
pub(crate) fn sweep(data: &DataDir, in_use: &BTreeSet<String>) -> Result<()> {
    sweep_older(data, in_use, SPARED_FOR)
}

fn sweep_older(data: &DataDir, in_use: &BTreeSet<String>, age: Duration) -> Result<()> {
    for path in condemn(data, in_use, age)? {
        sandyard_template::remove_tree(&path)
            .map_err(|error| EngineError::template("removing certificates", &error))?;
    }
    Ok(())
}

/// Takes them away from whoever may look for them, in one step each.
fn condemn(data: &DataDir, in_use: &BTreeSet<String>, age: Duration) -> Result<Vec<PathBuf>> {
    let Some(_lock) = Lock::try_take(&data.trust_lock()).doing("lock", "trust.lock")? else {
        // Somebody is looking for one: next time.
        return Ok(Vec::new());
    };
    let folder = data.trust();
    let mut condemned = Vec::new();
    for entry in fs::read_dir(&folder)
        .doing("list", folder.display())?
        .flatten()
    {
        let (path, name) = (
            entry.path(),
            entry.file_name().to_string_lossy().into_owned(),
        );
        if name.starts_with(CONDEMNED) {
            condemned.push(path);
        } else if !in_use.contains(&name) && is_older(&path, age) {
            // One that was never finished, too: nobody uses it.
            let aside = folder.join(format!("{CONDEMNED}{name}"));
            fs::rename(&path, &aside).doing("put aside", path.display())?;
            condemned.push(aside);
        }
    }
    Ok(condemned)
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
        let left = || {
            let entries = fs::read_dir(data.trust()).expect("list").flatten();
            let mut names: Vec<_> = entries
                .map(|entry| entry.file_name().into_string().expect("UTF-8"))
                .collect();
            names.sort();
            names
        };
        sweep(&data, &in_use).expect("sweep");
        assert_eq!(left(), [".new-cut-off", "unused", "used"]);
        let held = Lock::share(&data.trust_lock()).expect("share");
        sweep_older(&data, &in_use, Duration::ZERO).expect("sweep");
        assert_eq!(left().len(), 3, "somebody is looking for one");
        drop(held);
        // A process that another test forked meanwhile has the lock until it ends.
        let end = std::time::Instant::now() + Duration::from_secs(60);
        while left() != ["used"] {
            assert!(std::time::Instant::now() < end, "left: {:?}", left());
            sweep_older(&data, &in_use, Duration::ZERO).expect("sweep");
        }
        // A link, where there is memory to keep it in.
        fs::remove_dir_all(fs::canonicalize(data.run()).expect("a folder")).expect("remove");
    }
}
