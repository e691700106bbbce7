//! Resolves the links of a path, which must stay in the volume. Links that lead out of it would read or overwrite files of the volume
//! helper.
//!
//! A sandbox that mounts the volume may change a link between the check and the use. That reaches only the helper of this volume, which
//! is small and has no network.

use sandyard_agent_client::Output;
use sandyard_agent_client::wire::process::ProcessConfig;
use sandyard_provider::VOLUME_PATH;
use sandyard_service::{ServiceError, ServiceResult};

use super::program::process;
use super::{error, listing};

/// A path as the agent knows it, in the volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RealPath {
    /// Its parent folder, without links.
    folder: String,
    /// The path in that folder; it may be a link.
    itself: String,
    /// The target with links followed; none if it is outside the volume.
    end: Option<String>,
}

impl RealPath {
    /// The program that resolves a path, which need not exist.
    pub(super) fn resolver(path: &str) -> ProcessConfig {
        let (folder, _) = split(path);
        let [folder, path] = [folder, path].map(|path| format!("{VOLUME_PATH}{path}"));
        process("realpath", &["-m", "-z", "--", &folder, &path])
    }

    /// Parses the output of that program.
    pub(super) fn read(path: &str, output: &Output) -> ServiceResult<Self> {
        if output.exit.exit_code != 0 {
            return Err(error::of(path, &output.stderr, "look at"));
        }
        let text = str::from_utf8(&output.stdout).map_err(|_| listing::unreadable())?;
        let texts: Vec<&str> = text.split_terminator('\0').collect();
        let [folder, end] = texts[..] else {
            return Err(listing::unreadable());
        };
        if !is_inside(folder) {
            return Err(leads_out(path));
        }
        let itself = match split(path) {
            (_, "") => folder.to_owned(),
            (_, name) => format!("{folder}/{name}"),
        };
        Ok(Self {
            folder: folder.to_owned(),
            itself,
            end: is_inside(end).then(|| end.to_owned()),
        })
    }

    /// The path itself; of a link, the link.
    pub(super) fn itself(&self) -> &str {
        &self.itself
    }

    /// The path with links followed.
    pub(super) fn end(&self, path: &str) -> ServiceResult<String> {
        self.end.clone().ok_or_else(|| leads_out(path))
    }

    /// Its parent folder.
    pub(super) fn parent(&self) -> Self {
        Self {
            folder: self.folder.clone(),
            itself: self.folder.clone(),
            end: Some(self.folder.clone()),
        }
    }
}

/// The parent folder of a path and its name there; both are empty for the root.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

fn is_inside(path: &str) -> bool {
    let below = path.strip_prefix(VOLUME_PATH);
    below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
}

fn leads_out(path: &str) -> ServiceError {
    let shown: String = path.chars().filter(|c| !c.is_control()).take(200).collect();
    ServiceError::invalid(
        "path",
        format!("a link at `{shown}` leads out of the volume"),
    )
    .hint("its target exists only in sandboxes that mount the volume")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str, output: &str) -> ServiceResult<RealPath> {
        let output = Output {
            stdout: output.as_bytes().to_vec(),
            ..Output::default()
        };
        RealPath::read(path, &output)
    }

    #[test]
    fn links_out_of_the_volume_are_refused() {
        let plain = read("/a/b", "/volume/x\0/volume/y\0").unwrap();
        assert_eq!(plain.itself(), "/volume/x/b");
        assert_eq!(plain.end("/a/b").unwrap(), "/volume/y");
        assert_eq!(plain.parent().itself(), "/volume/x");
        let root = read("/", "/volume\0/volume\0").unwrap();
        assert_eq!(root.itself(), "/volume");
        assert_eq!(root.end("/").unwrap(), "/volume");
        for out in ["/usr/bin/find", "/volumes", "/", ""] {
            let link = read("/a", &format!("/volume\0{out}\0")).unwrap();
            assert_eq!(link.itself(), "/volume/a");
            assert_eq!(link.end("/a").unwrap_err().field, Some("path"));
            assert!(read("/a/b", &format!("{out}\0/volume/b\0")).is_err());
        }
        for invalid in ["", "/volume\0", "/volume\0/volume\0/volume\0"] {
            assert!(read("/a", invalid).is_err(), "{invalid:?}");
        }
    }
}
