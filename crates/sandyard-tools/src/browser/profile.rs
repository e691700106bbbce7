//! The profile folder of a browser.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Prefix of the folders' names, followed by the process ID of the tool server.
const PREFIX: &str = "sandyard-browser-";

/// A profile folder. Dropping it removes the folder. Creating and removing it blocks.
#[derive(Debug)]
pub(super) struct Profile(PathBuf);

impl Profile {
    /// Creates a folder. Removes those of killed tool servers first.
    pub(super) fn create() -> io::Result<Self> {
        let temporary = std::env::temp_dir();
        remove_stale(&temporary);
        let folder = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{}-", std::process::id()))
            .tempdir_in(&temporary)?;
        let profile = Self(folder.keep());
        std::fs::create_dir(profile.temporary())?;
        Ok(profile)
    }

    /// Path of the folder.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Folder for sockets and shared memory, so that they are removed too.
    pub(super) fn temporary(&self) -> PathBuf {
        self.0.join("tmp")
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        // Killed processes may still write for a moment.
        for _ in 0..50 {
            match std::fs::remove_dir_all(&self.0) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                _ => return,
            }
        }
        tracing::warn!(folder = %self.0.display(), "cannot remove the browser's profile folder");
    }
}

/// Removes folders of processes that no longer exist.
fn remove_stale(temporary: &Path) {
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
