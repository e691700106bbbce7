//! The id of a data directory, made once: two clients with the same id reach the same sandboxes.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::error::{EngineError, ErrorKind, Result};
use crate::random;

/// Reads the id at `path`, or makes it. Only for the holder of the launcher's lock.
pub(crate) fn read_or_make(path: &Path) -> Result<String> {
    match fs::read_to_string(path) {
        Ok(text) => parse(path, &text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let id = random::hex(&random::bytes::<16>()?);
            write(path, &id).map_err(|error| failed("writing", path, &error))?;
            Ok(id)
        }
        Err(error) => Err(failed("reading", path, &error)),
    }
}

/// Writes the id whole or not at all, and syncs it: after a power failure it must not change.
fn write(path: &Path, id: &str) -> io::Result<()> {
    let temporary = path.with_extension("new");
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(&temporary)?;
    file.write_all(format!("{id}\n").as_bytes())?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::File::open(folder)?.sync_all()
}

fn parse(path: &Path, text: &str) -> Result<String> {
    let id = text.trim();
    if id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(id.to_owned());
    }
    let message = format!(
        "`{}` does not contain a valid installation id",
        path.display()
    );
    Err(EngineError::new(ErrorKind::Invalid, message)
        .hint("restore it, or remove it if no server uses this data directory"))
}

fn failed(operation: &str, path: &Path, error: &io::Error) -> EngineError {
    EngineError::failed(format!("{operation} `{}`", path.display()), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_made_once_and_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("installation-id");
        let made = read_or_make(&path).expect("make");
        assert_eq!(read_or_make(&path).expect("read"), made);
        fs::remove_file(&path).expect("remove");
        assert_ne!(read_or_make(&path).expect("make another"), made);
    }

    #[test]
    fn a_damaged_one_is_reported_and_not_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("installation-id");
        fs::write(&path, "").expect("write");
        assert_eq!(
            read_or_make(&path).expect_err("damaged").kind,
            ErrorKind::Invalid
        );
        assert_eq!(fs::read_to_string(&path).expect("read"), "");
    }
}
