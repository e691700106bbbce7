//! The name of a data directory, which distinguishes its servers from those of other hosts on the same database.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Reads the name, or creates it; several servers may do so at once and get the same one.
pub(super) fn data_dir_name(data_dir: &Path) -> io::Result<String> {
    let folder = data_dir.join("nodes");
    fs::create_dir_all(&folder)?;
    let path = folder.join("place");
    if let Some(name) = read(&path)? {
        return Ok(name);
    }
    let name = sandyard_service::new_installation_name().map_err(io::Error::other)?;
    let own = folder.join(format!("place.{name}"));
    let mut file = fs::OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(&own)?;
    file.write_all(name.as_bytes())?;
    file.sync_all()?;
    // A link, unlike a rename, leaves the name that another server may have made meanwhile.
    let linked = fs::hard_link(&own, &path);
    fs::remove_file(&own)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    read(&path)?.ok_or_else(|| io::Error::other("the name of the data directory is empty"))
}

fn read(path: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text.trim().to_owned()).filter(|name| !name.is_empty())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
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
