//! The name of a data directory, which distinguishes its servers from those of other hosts on the same database.

use std::fs;
use std::io;
use std::path::Path;

use sandyard_tls::files;

/// Reads the name, or creates it; several servers may do so at once and get the same one.
pub(super) fn data_dir_name(data_dir: &Path) -> io::Result<String> {
    let folder = data_dir.join("nodes");
    fs::create_dir_all(&folder)?;
    let path = folder.join("place");
    if !path.exists() {
        let name = sandyard_service::new_installation_name().map_err(io::Error::other)?;
        // Leaves the name that another server may have made meanwhile.
        files::create(&path, name.as_bytes(), files::PRIVATE)?;
    }
    match fs::read_to_string(&path)?.trim() {
        "" => Err(io::Error::other("the name of the data directory is empty")),
        name => Ok(name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrent_readers_create_one_name() {
        let folder = tempfile::tempdir().unwrap();
        let ask = || data_dir_name(folder.path()).unwrap();
        let (one, two) = std::thread::scope(|scope| {
            let (one, two) = (scope.spawn(ask), scope.spawn(ask));
            (one.join().unwrap(), two.join().unwrap())
        });
        assert_eq!(one, two);
        assert_eq!(ask(), one);
        let files = fs::read_dir(folder.path().join("nodes")).unwrap();
        assert_eq!(files.count(), 1);
    }
}
