//! Writes files completely or not at all: a new file replaces the old one by a rename.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Writes a file that only the user of this process may read.
pub(crate) fn write_secret(path: &Path, text: &[u8]) -> io::Result<()> {
    write_file(path, text, 0o600)
}

/// Writes a file with this mode.
pub(crate) fn write_file(path: &Path, text: &[u8], mode: u32) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let temporary = path.with_extension("new");
    // A file left by a crash may have any mode.
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&temporary)?;
    // The mode applies whatever the umask of the process is.
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&temporary, path)
}
