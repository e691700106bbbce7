//! The folder a browser keeps its things in.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the folders' names begin with; the process id of the tool server comes next.
const PREFIX: &str = "sandyard-browser-";

/// A folder of one browser's, removed when this is dropped. It blocks while it is made and while it is removed.
#[derive(Debug)]
pub(super) struct Profile(PathBuf);

impl Profile {
    /// Makes one. Those that a tool server which was killed has left are removed first.
    pub(super) fn make() -> io::Result<Self> {
        let temporary = std::env::temp_dir();
        sweep(&temporary);
        let folder = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{}-", std::process::id()))
            .tempdir_in(&temporary)?;
        let profile = Self(folder.keep());
        std::fs::create_dir(profile.temporary())?;
        Ok(profile)
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// For sockets and shared memory, so that they are removed with the rest.
    pub(super) fn temporary(&self) -> PathBuf {
        self.0.join("tmp")
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        // Killed processes may need a moment to be gone, and until then they may still write.
        for _ in 0..50 {
            match std::fs::remove_dir_all(&self.0) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                _ => return,
            }
        }
        tracing::warn!(folder = %self.0.display(), "the browser's folder could not be removed");
    }
}

/// Removes what was left. Only our own user's can be removed, so nothing else is asked.
fn sweep(temporary: &Path) {
    for entry in std::fs::read_dir(temporary).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX))
            .and_then(|rest| rest.split_once('-'))
            .and_then(|(owner, _)| owner.parse::<u32>().ok());
        if owner.is_some_and(|owner| !Path::new(&format!("/proc/{owner}")).exists()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
