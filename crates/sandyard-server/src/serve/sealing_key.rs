//! The key that seals secrets, where no setting names one: made once, and kept in the data directory.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sandyard_config::{SealingKey, Settings};
use sandyard_core::random;
use sandyard_tls::files;

/// Name of its file in the data directory.
pub const SEALING_KEY_FILE: &str = "secrets.key";

/// The longest such file that is read; one that people wrote may end with a newline or two.
const MAX_BYTES: u64 = 4096;

/// The key is missing or unreadable.
#[derive(Debug, thiserror::Error)]
pub enum SealingKeyError {
    /// Its file cannot be made or read.
    #[error("cannot use `{path}`")]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The file does not contain a key. A new key in its place would silently make every secret unreadable.
    #[error(
        "`{path}` holds no key of 32 bytes: bring the right one back, or remove the file and set every secret anew"
    )]
    NoKey {
        /// Path of the file.
        path: PathBuf,
    },
}

/// The key of the settings, else that of the data directory, which is made if there is none.
///
/// Servers that start at the same time in one data directory all get the same key: only the first one creates the file.
pub(super) fn sealing_key(settings: &Settings) -> Result<[u8; 32], SealingKeyError> {
    match &settings.sealing_key {
        Some(key) => Ok(key.expose()),
        None => read_or_create(&settings.data_dir),
    }
}

fn read_or_create(folder: &Path) -> Result<[u8; 32], SealingKeyError> {
    let path = folder.join(SEALING_KEY_FILE);
    let failed = |source| SealingKeyError::File {
        path: path.clone(),
        source,
    };
    if !path.exists() {
        let new = random::text::<32>().map_err(failed)?;
        // All secrets are sealed with the key from now on: it must survive a power cut, as they do.
        files::create(&path, format!("{new}\n").as_bytes(), files::PRIVATE).map_err(failed)?;
    }
    let text = read(&path).map_err(failed)?;
    let key = std::str::from_utf8(&text)
        .ok()
        .and_then(SealingKey::from_text);
    key.map(|key| key.expose())
        .ok_or(SealingKeyError::NoKey { path })
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?.take(MAX_BYTES).read_to_end(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn a_key_is_made_once_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let key = read_or_create(folder.path()).unwrap();
        assert_ne!(key, [0; 32]);
        assert_eq!(read_or_create(folder.path()).unwrap(), key);
        let metadata = fs::metadata(folder.path().join(SEALING_KEY_FILE)).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
        let names = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(names, 1, "nothing is left beside it");
        let other = tempfile::tempdir().unwrap();
        assert_ne!(read_or_create(other.path()).unwrap(), key);
    }

    #[test]
    fn servers_that_start_at_once_agree() {
        for _ in 0..20 {
            let folder = tempfile::tempdir().unwrap();
            let barrier = Barrier::new(8);
            let keys: Vec<[u8; 32]> = std::thread::scope(|scope| {
                let start = || {
                    barrier.wait();
                    read_or_create(folder.path()).unwrap()
                };
                let threads: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
                threads.into_iter().map(|it| it.join().unwrap()).collect()
            });
            assert!(keys.iter().all(|key| *key == keys[0]));
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }

    #[test]
    fn a_file_without_a_key_is_refused_and_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(SEALING_KEY_FILE);
        for text in ["", "hunter2\n", "\u{0}"] {
            fs::write(&path, text).unwrap();
            let error = read_or_create(folder.path()).unwrap_err();
            assert!(matches!(error, SealingKeyError::NoKey { .. }), "{text:?}");
            assert!(!error.to_string().contains("hunter2"));
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        fs::write(&path, "07".repeat(32)).unwrap();
        assert_eq!(read_or_create(folder.path()).unwrap(), [7; 32]);
    }

    #[test]
    fn an_unwritable_folder_is_an_error() {
        let error = read_or_create(Path::new("/nonexistent")).unwrap_err();
        assert!(matches!(error, SealingKeyError::File { .. }));
    }
}
