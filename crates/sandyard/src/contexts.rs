//! Servers that the user logged in to, in a file that only the user can read: `~/.config/sandyard/contexts.json`.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

/// The servers by name.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Contexts {
    /// The one to use when no other is named.
    pub(crate) current: Option<String>,
    pub(crate) contexts: BTreeMap<String, Login>,
}

/// A server and the user's credentials for it.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Login {
    pub(crate) url: String,
    #[serde(default)]
    pub(crate) user: String,
    pub(crate) key: String,
    /// Certificates to trust.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ca_pem: Option<String>,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut output = f.debug_struct("Login");
        output.field("url", &self.url).finish_non_exhaustive()
    }
}

impl Contexts {
    /// Reads a file; empty if it does not exist.
    pub(crate) fn load(path: &Path) -> anyhow::Result<Self> {
        let reading = || format!("reading `{}`", path.display());
        let metadata = match std::fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Ok(Self::default());
            }
            Err(error) => return Err(error).with_context(reading),
        };
        if metadata.mode() & 0o077 != 0 {
            bail!(
                "other users may access the keys in `{0}`: run `chmod 600 {0}`",
                path.display()
            );
        }
        let text = std::fs::read_to_string(path).with_context(reading)?;
        serde_json::from_str(&text).with_context(reading)
    }

    /// Replaces a file. Only the user may read it.
    pub(crate) fn save(&self, path: &Path) -> anyhow::Result<()> {
        let writing = || format!("writing `{}`", path.display());
        let folder = path.parent().with_context(writing)?;
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .with_context(writing)?;
        let partial = path.with_extension(format!("part-{}", std::process::id()));
        let written = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&partial)
            .and_then(|mut file| {
                serde_json::to_writer_pretty(&mut file, self)?;
                file.write_all(b"\n")?;
                file.sync_all()?;
                std::fs::rename(&partial, path)
            });
        if written.is_err() {
            let _ = std::fs::remove_file(&partial);
        }
        written.with_context(writing)
    }
}

/// Where the file is, given the values of `XDG_CONFIG_HOME` and `HOME`.
pub(crate) fn path(config_home: Option<PathBuf>, home: Option<PathBuf>) -> Option<PathBuf> {
    let folder = config_home.or_else(|| Some(home?.join(".config")))?;
    Some(folder.join("sandyard/contexts.json"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn only_the_user_can_read_the_file() {
        let here = tempfile::tempdir().unwrap();
        let path = path(None, Some(here.path().to_owned())).unwrap();
        assert_eq!(Contexts::load(&path).unwrap(), Contexts::default());
        let login = Login {
            url: "https://yard.example".to_owned(),
            user: "alice".to_owned(),
            key: "e2b_secret".to_owned(),
            ca_pem: None,
        };
        assert!(!format!("{login:?}").contains("secret"));
        let contexts = Contexts {
            current: Some("yard".to_owned()),
            contexts: [("yard".to_owned(), login)].into(),
        };
        for _ in 0..2 {
            contexts.save(&path).unwrap();
        }
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(Contexts::load(&path).unwrap(), contexts);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(
            Contexts::load(&path)
                .unwrap_err()
                .to_string()
                .contains("chmod 600")
        );
    }
}
