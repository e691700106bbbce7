//! The host's door, for root alone: whoever comes in there is trusted.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;

/// Listens at `socket`, in a folder made anew: what is there is from before a stop, or from somebody who was here first.
pub(super) fn open(socket: &Path) -> io::Result<OwnedFd> {
    let folder = socket.parent().unwrap_or(Path::new("/"));
    match fs::symlink_metadata(folder) {
        // Not through a link, which is removed itself.
        Ok(found) if found.is_dir() => fs::remove_dir_all(folder)?,
        Ok(_) => fs::remove_file(folder)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    DirBuilder::new().mode(0o700).create(folder)?;
    let listener = UnixListener::bind(socket)?;
    fs::set_permissions(socket, Permissions::from_mode(0o600))?;
    Ok(listener.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_door_is_roots_alone_whatever_was_there() {
        let place = tempfile::tempdir().expect("a folder");
        let socket = place.path().join("sandyard/agent.sock");
        let folder = place.path().join("sandyard");
        std::os::unix::fs::symlink(place.path().join("elsewhere"), &folder).expect("a link");
        for _ in 0..2 {
            drop(open(&socket).expect("a door"));
            let found = fs::symlink_metadata(&folder).expect("there");
            assert!(found.is_dir());
            assert_eq!(found.permissions().mode() & 0o777, 0o700);
        }
        assert!(!place.path().join("elsewhere").exists());
    }
}
