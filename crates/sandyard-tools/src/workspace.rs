//! Which paths tools may access.
//!
//! A path is resolved link by link before it is checked, so that neither `..` nor a link leads out. The check is against a model's
//! mistakes, not against the user's programs: those could change a link between the check and the use.

use std::io;
use std::path::{Component, Path, PathBuf};

use crate::options::Options;
use crate::reply::{Problem, Result};

/// The folders that tools may access.
#[derive(Debug, Clone)]
pub(crate) struct Workspace {
    root: PathBuf,
    home: PathBuf,
    /// All accessible folders, with links resolved.
    roots: Vec<PathBuf>,
}

impl Workspace {
    /// The workspace of these options.
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

    /// The folder that relative paths start from.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Resolves all links of a path, which need not exist, and checks that it is accessible.
    pub(crate) fn resolve(&self, path: &str) -> Result<PathBuf> {
        if path.is_empty() || path.contains('\0') {
            return Err(Problem::new("the path is empty or contains a NUL byte"));
        }
        // Models write `~` as in a shell.
        let from = match path.strip_prefix('~') {
            Some("") => self.home.clone(),
            Some(rest) if rest.starts_with('/') => self.home.join(rest.trim_start_matches('/')),
            _ => self.root.join(path),
        };
        let real = real_path(&from)
            .map_err(|error| Problem::new(format!("{path} cannot be resolved: {error}")))?;
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

    /// Resolves the path of a file to write. A path that ends with `/` is an error.
    pub(crate) fn resolve_file(&self, path: &str) -> Result<PathBuf> {
        if path.ends_with('/') {
            return Err(Problem::new(format!(
                "{path} is a folder: give the path of a file in it"
            )));
        }
        self.resolve(path)
    }

    /// Returns whether a path without links is accessible.
    pub(crate) fn contains(&self, real: &Path) -> bool {
        self.roots.iter().any(|root| real.starts_with(root))
    }

    /// A path for replies: relative to the workspace, or absolute if it is outside of it. [`resolve`](Self::resolve) accepts both.
    pub(crate) fn display(&self, real: &Path) -> String {
        let below = self
            .roots
            .first()
            .and_then(|root| real.strip_prefix(root).ok());
        let below = below.filter(|below| !below.as_os_str().is_empty() && !below.starts_with("~"));
        below.unwrap_or(real).display().to_string()
    }
}

/// Resolves every link of the part that exists. The rest consists of plain names.
fn real_path(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Ok(real) => return Ok(real),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Err(_) => {}
    }
    // Follow dangling links too: writing to one creates its target.
    real_path_of_missing(path, 0)
}

/// Maximum number of links, as in the kernel.
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
    fn no_path_leads_out_of_the_workspace() {
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
    fn displayed_paths_resolve_to_themselves() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = workspace(folder.path());
        let real = folder.path().canonicalize().unwrap();
        for name in ["a", "a/b", "~/odd", ".hidden"] {
            let path = real.join(name);
            let displayed = workspace.display(&path);
            assert_eq!(workspace.resolve(&displayed).unwrap(), path, "{displayed}");
        }
        assert_eq!(workspace.display(&real.join("a/b")), "a/b");
        assert_eq!(workspace.display(&real), real.display().to_string());
        assert_eq!(workspace.display(Path::new("/tmp/x")), "/tmp/x");
    }
}
