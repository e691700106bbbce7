//! The authority's files, which several servers may make at once.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustls::crypto::CryptoProvider;
use zeroize::Zeroizing;

use super::certificates;
use crate::settings::GatewayError;

/// Puts a file in its place, whole or not at all. Without `replaces`, one that is there already stays.
pub(super) fn place(
    provider: &CryptoProvider,
    path: &Path,
    content: &[u8],
    mode: u32,
    replaces: bool,
) -> Result<(), GatewayError> {
    let mut random = [0; 8];
    certificates::random(provider, &mut random)?;
    let suffix = u64::from_ne_bytes(random);
    let draft = path.with_extension(format!("{suffix:016x}.draft"));
    let placed = write(&draft, content, mode).and_then(|()| {
        if replaces {
            return fs::rename(&draft, path);
        }
        match fs::hard_link(&draft, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        }
    });
    if !replaces || placed.is_err() {
        let _ = fs::remove_file(&draft);
    }
    let synced = placed.and_then(|()| match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    });
    synced.map_err(|source| unusable(path, source))
}

fn write(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(mode).open(path)?;
    // Whatever the mask of the process says.
    file.set_permissions(Permissions::from_mode(mode))?;
    file.write_all(content)?;
    file.sync_all()
}

/// Reads a file, if there is one.
pub(super) fn read(path: &Path) -> Result<Option<Zeroizing<Vec<u8>>>, GatewayError> {
    match fs::read(path) {
        Ok(content) => Ok(Some(Zeroizing::new(content))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(unusable(path, source)),
    }
}

/// Reads a file that must be there.
pub(super) fn reread(path: &Path) -> Result<Zeroizing<Vec<u8>>, GatewayError> {
    read(path)?.ok_or_else(|| unusable(path, io::ErrorKind::NotFound.into()))
}

/// What a file holds, as text.
pub(super) fn as_text(path: &Path, content: Zeroizing<Vec<u8>>) -> Result<String, GatewayError> {
    let bad = |_| unusable(path, io::ErrorKind::InvalidData.into());
    String::from_utf8(content.to_vec()).map_err(bad)
}

/// Says that a file cannot be used.
pub(super) fn unusable(path: &Path, source: io::Error) -> GatewayError {
    GatewayError::File {
        path: PathBuf::from(path),
        source,
    }
}
