//! Where a path of a volume leads when the links on the way are followed: in the volume, or it is refused. Links that lead
//! out of it would show, and let be overwritten, what the keeper itself consists of.
//!
//! A sandbox that has the volume may change a link between the answer and what is done next. What that reaches is the keeper
//! of that volume alone, which is small and has no way out.

use sandyard_agent_client::Output;
use sandyard_agent_client::wire::process::ProcessConfig;
use sandyard_provider::VOLUME_PATH;
use sandyard_service::ServiceError;

use super::program::process;
use super::{error, listing};

/// A path as the agent knows it, in the volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RealPath {
    /// The folder it is in; no links are in this.
    folder: String,
    /// In that folder; a link, perhaps.
    itself: String,
    /// Where that leads; none: out of the volume.
    end: Option<String>,
}

impl RealPath {
    /// The program that says where a path leads; what is not there is no failure.
    pub(super) fn question(path: &str) -> ProcessConfig {
        let (folder, _) = split(path);
        let [folder, path] = [folder, path].map(|path| format!("{VOLUME_PATH}{path}"));
        process("realpath", &["-m", "-z", "--", &folder, &path])
    }

    /// Reads what that program says.
    pub(super) fn read(path: &str, output: &Output) -> Result<Self, ServiceError> {
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

    /// The path, of a link the link.
    pub(super) fn itself(&self) -> &str {
        &self.itself
    }

    /// The path, of a link where it leads.
    pub(super) fn end(&self, path: &str) -> Result<String, ServiceError> {
        self.end.clone().ok_or_else(|| leads_out(path))
    }

    /// The folder it is in.
    pub(super) fn parent(&self) -> Self {
        Self {
            folder: self.folder.clone(),
            itself: self.folder.clone(),
            end: Some(self.folder.clone()),
        }
    }
}

/// A path's folder, empty for the root, and its name there, empty for the root itself.
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
    .hint("what it leads to is only there in sandboxes")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str, said: &str) -> Result<RealPath, ServiceError> {
        let output = Output {
            stdout: said.as_bytes().to_vec(),
            ..Output::default()
        };
        RealPath::read(path, &output)
    }

    #[test]
    fn what_leads_out_is_refused() {
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
        for odd in ["", "/volume\0", "/volume\0/volume\0/volume\0"] {
            assert!(read("/a", odd).is_err(), "{odd:?}");
        }
    }
}
