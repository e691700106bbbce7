//! Files that are written whole or not at all.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use tempfile::NamedTempFile;

/// Mode of a file that only its owner may read.
pub const PRIVATE: u32 = 0o600;
/// Mode of a file that everybody may read.
pub const PUBLIC: u32 = 0o644;

/// Creates a folder that only its owner may enter, and all folders above it.
///
/// # Errors
///
/// When it cannot be created.
pub fn create_private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Writes a file, replacing one that exists.
///
/// # Errors
///
/// When it cannot be written; then an existing file is as it was.
pub fn replace(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let (draft, folder) = draft(path, content, mode)?;
    draft.persist(path).map_err(|failed| failed.error)?;
    folder.sync_all()
}

/// Writes a file, unless one exists already.
///
/// # Errors
///
/// When it cannot be written.
pub fn create(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let (draft, folder) = draft(path, content, mode)?;
    match draft.persist_noclobber(path) {
        Err(failed) if failed.error.kind() != io::ErrorKind::AlreadyExists => Err(failed.error),
        _ => folder.sync_all(),
    }
}

/// Reads a file, if there is one.
///
/// # Errors
///
/// When it exists and cannot be read.
pub fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        content => content.map(Some),
    }
}

/// Writes the content into a temporary file beside the path; also returns their folder.
fn draft(path: &Path, content: &[u8], mode: u32) -> io::Result<(NamedTempFile, File)> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut draft = NamedTempFile::new_in(folder)?;
    // Set here, because the umask would change the mode given at creation.
    draft
        .as_file()
        .set_permissions(Permissions::from_mode(mode))?;
    draft.write_all(content)?;
    draft.as_file().sync_all()?;
    Ok((draft, File::open(folder)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_replaced_or_kept_and_leave_no_drafts() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a/b");
        create(&path, b"first", PRIVATE).expect_err("no folder");
        create_private_folder(&folder.path().join("a")).expect("a folder");
        create(&path, b"first", PRIVATE).expect("created");
        create(&path, b"second", PUBLIC).expect("kept");
        assert_eq!(read(&path).expect("read").as_deref(), Some(&b"first"[..]));
        replace(&path, b"third", PUBLIC).expect("replaced");
        assert_eq!(read(&path).expect("read").as_deref(), Some(&b"third"[..]));
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!(
            (mode(&path), mode(&folder.path().join("a"))),
            (0o644, 0o700)
        );
        let count = fs::read_dir(folder.path().join("a"))
            .expect("a folder")
            .count();
        assert_eq!(count, 1);
        assert_eq!(read(&folder.path().join("none")).expect("read"), None);
    }
}
