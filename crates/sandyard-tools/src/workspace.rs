//! Which paths tools may touch.
//!
//! A path is resolved link by link before it is looked at, so that neither `..` nor a link leads out. What is inside is the
//! user's own, and so is the moment between the check and the use: this keeps a model's mistakes in, not the user's programs.

use std::io;
use std::path::{Component, Path, PathBuf};

use crate::options::Options;
use crate::reply::Problem;

/// The folders tools may work in.
#[derive(Debug, Clone)]
pub(crate) struct Workspace {
    root: PathBuf,
    home: PathBuf,
    /// With their own links resolved.
    roots: Vec<PathBuf>,
}

impl Workspace {
    /// Of these options.
    pub(crate) fn new(options: &Options) -> Self {
        let all = [&options.workspace].into_iter().chain(&options.more_roots);
        let roots = all
            .map(|root| root.canonicalize().unwrap_or_else(|_| root.clone()))
            .collect();
        Self {
            root: options.workspace.clone(),
            home: options.home.clone(),
            roots,
        }
    }

    /// Where relative paths begin.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The place a path means, whether or not something is there: all links resolved, and inside.
    pub(crate) fn resolve(&self, path: &str) -> Result<PathBuf, Problem> {
        if path.is_empty() || path.contains('\0') {
            return Err(Problem::new("the path is empty or has a NUL byte in it"));
        }
        // As a shell would: models write it.
        let from = match path.strip_prefix('~') {
            Some("") => self.home.clone(),
            Some(rest) if rest.starts_with('/') => self.home.join(rest.trim_start_matches('/')),
            _ => self.root.join(path),
        };
        let real = real_path(&from)
            .map_err(|error| Problem::new(format!("{path} cannot be looked up: {error}")))?;
        if self.contains(&real) {
            return Ok(real);
        }
        let roots: Vec<_> = self
            .roots
            .iter()
            .map(|root| root.display().to_string())
            .collect();
        Err(Problem::new(format!(
            "{path} is outside of the workspace: use a path below {}",
            roots.join(", ")
        )))
    }

    /// The same for something to be written, which a path that is written as a folder's does not name.
    pub(crate) fn resolve_file(&self, path: &str) -> Result<PathBuf, Problem> {
        if path.ends_with('/') {
            return Err(Problem::new(format!(
                "{path} names a folder: name the file in it"
            )));
        }
        self.resolve(path)
    }

    /// Whether a path without links is inside.
    pub(crate) fn contains(&self, real: &Path) -> bool {
        self.roots.iter().any(|root| real.starts_with(root))
    }

    /// A path as it is told: from the workspace on, and absolute outside of it. Either way [`resolve`](Self::resolve) finds it.
    pub(crate) fn shown(&self, real: &Path) -> String {
        let below = self
            .roots
            .first()
            .and_then(|root| real.strip_prefix(root).ok());
        let below = below.filter(|below| !below.as_os_str().is_empty() && !below.starts_with("~"));
        below.unwrap_or(real).display().to_string()
    }
}

/// Resolves every link of the part that exists; what comes after must be plain names.
fn real_path(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Ok(real) => return Ok(real),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Err(_) => {}
    }
    // A link that leads nowhere is followed too: whoever writes to it writes where it leads.
    real_path_of_missing(path, 0)
}

/// As deep as the kernel follows links.
const MAX_LINKS: usize = 40;

fn real_path_of_missing(path: &Path, depth: usize) -> io::Result<PathBuf> {
    if depth > MAX_LINKS {
        return Err(io::Error::from_raw_os_error(
            rustix::io::Errno::LOOP.raw_os_error(),
        ));
    }
    let mut real = PathBuf::from("/");
    let mut parts = path.components();
    while let Some(part) = parts.next() {
        match part {
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            Component::ParentDir => {
                real.pop();
            }
            Component::Normal(name) => {
                let next = real.join(name);
                match std::fs::read_link(&next) {
                    Ok(target) => {
                        let rest: PathBuf = parts.collect();
                        return real_path_of_missing(&real.join(target).join(rest), depth + 1);
                    }
                    Err(_) => real = next,
                }
            }
        }
    }
    Ok(real)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn workspace(root: &Path) -> Workspace {
        Workspace::new(&Options {
            workspace: root.to_owned(),
            more_roots: Vec::new(),
            home: root.to_owned(),
            token: None,
            port: 6060,
        })
    }

    #[test]
    fn nothing_leads_out() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("work");
        std::fs::create_dir_all(root.join("inner")).unwrap();
        std::fs::create_dir(folder.path().join("work-not")).unwrap();
        symlink("/etc", root.join("etc")).unwrap();
        symlink("/nowhere/at/all", root.join("dangling")).unwrap();
        symlink("dangling", root.join("twice")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        symlink("inner", root.join("good")).unwrap();
        let workspace = workspace(&root);
        for bad in [
            "..",
            "../work-not/x",
            "/etc/passwd",
            "etc/passwd",
            "etc/new",
            "dangling",
            "dangling/x",
            "twice",
            "loop",
            "inner/../../x",
            "",
            "a\0b",
            "/",
        ] {
            assert!(workspace.resolve(bad).is_err(), "{bad:?}");
        }
        let real = root.canonicalize().unwrap();
        assert_eq!(
            workspace.resolve("good/new.txt").unwrap(),
            real.join("inner/new.txt")
        );
        assert_eq!(
            workspace.resolve("missing/folder/x").unwrap(),
            real.join("missing/folder/x")
        );
        assert_eq!(workspace.resolve("inner/../x").unwrap(), real.join("x"));
        assert_eq!(workspace.resolve(".").unwrap(), real);
        assert_eq!(workspace.resolve("~/x").unwrap(), real.join("x"));
        assert_eq!(workspace.resolve("~").unwrap(), real);
        assert_eq!(workspace.resolve("~x").unwrap(), real.join("~x"));
        assert!(workspace.resolve("~/../x").is_err());
    }

    #[test]
    fn what_is_told_can_be_used_again() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = workspace(folder.path());
        let real = folder.path().canonicalize().unwrap();
        for name in ["a", "a/b", "~/odd", ".hidden"] {
            let path = real.join(name);
            let shown = workspace.shown(&path);
            assert_eq!(workspace.resolve(&shown).unwrap(), path, "{shown}");
        }
        assert_eq!(workspace.shown(&real.join("a/b")), "a/b");
        assert_eq!(workspace.shown(&real), real.display().to_string());
        assert_eq!(workspace.shown(Path::new("/tmp/x")), "/tmp/x");
    }
}
