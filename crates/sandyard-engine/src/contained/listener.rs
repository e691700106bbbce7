//! The agent's socket for the host. Only root may connect, and the agent trusts every connection.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;

/// Listens at `socket`, in a new folder. An existing folder is left over from before a stop, or belongs to the image.
pub(super) fn open(socket: &Path) -> io::Result<OwnedFd> {
    let folder = socket.parent().unwrap_or(Path::new("/"));
    match fs::symlink_metadata(folder) {
        // A link is removed itself, not what it leads to.
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
    fn the_folder_is_for_root_alone_whatever_was_there() {
        let parent = tempfile::tempdir().expect("a folder");
        let socket = parent.path().join("sandyard/agent.sock");
        let folder = parent.path().join("sandyard");
        std::os::unix::fs::symlink(parent.path().join("elsewhere"), &folder).expect("a link");
        for _ in 0..2 {
            drop(open(&socket).expect("a listener"));
            let found = fs::symlink_metadata(&folder).expect("there");
            assert!(found.is_dir());
            assert_eq!(found.permissions().mode() & 0o777, 0o700);
        }
        assert!(!parent.path().join("elsewhere").exists());
    }
}
