//! What `.ignore` and `.gitignore` leave out.
//!
//! The walker would open these files itself, whatever they are: a named pipe would hold its thread for ever, and a link to
//! a device would fill the memory. Here only small regular files are read.

use std::io::Read;
use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::files::open::open;

/// Largest file of rules; a larger one is not looked at.
const MAX_FILE: u64 = 256 * 1024;
/// What the rules that hold for one folder may have together.
const MAX_ALL: u64 = 1024 * 1024;

/// The rules of the folders above what is looked at now: a walk goes down and up again, never across.
#[derive(Debug)]
pub(super) struct Ignored {
    /// The outermost folder first.
    folders: Vec<Folder>,
}

#[derive(Debug)]
struct Folder {
    path: PathBuf,
    /// Its `.ignore`, which goes before every `.gitignore`.
    own: Option<Gitignore>,
    git: Option<Gitignore>,
    bytes: u64,
}

impl Ignored {
    /// With the rules of the folders that this one is in, as far up as its repository goes.
    pub(super) fn above(root: &Path) -> Self {
        let mut ignored = Self {
            folders: Vec::new(),
        };
        let has_git = |folder: &Path| folder.join(".git").symlink_metadata().is_ok();
        if has_git(root) {
            return ignored;
        }
        let mut above: Vec<_> = root.ancestors().skip(1).collect();
        let inside = above.iter().position(|folder| has_git(folder));
        above.truncate(inside.map_or(above.len(), |last| last + 1));
        for folder in above.into_iter().rev() {
            ignored.enter(folder);
        }
        ignored
    }

    /// Whether a path is left out. The folders above it have been asked for before, in the order of a walk.
    pub(super) fn has(&mut self, path: &Path, is_folder: bool) -> bool {
        let Some(parent) = path.parent() else {
            return false;
        };
        while let Some(last) = self.folders.last()
            && !parent.starts_with(&last.path)
        {
            self.folders.pop();
        }
        if self.folders.last().is_none_or(|last| last.path != parent) {
            self.enter(parent);
        }
        // The nearest rule that says something decides.
        let said = |rules: fn(&Folder) -> Option<&Gitignore>| {
            let nearest = self.folders.iter().rev().filter_map(rules);
            nearest
                .map(|rules| rules.matched(path, is_folder))
                .find(|said| !said.is_none())
        };
        let said =
            said(|folder| folder.own.as_ref()).or_else(|| said(|folder| folder.git.as_ref()));
        matches!(said, Some(Match::Ignore(_)))
    }

    fn enter(&mut self, folder: &Path) {
        let mut left = MAX_ALL.saturating_sub(self.folders.iter().map(|folder| folder.bytes).sum());
        let before = left;
        let own = rules(folder, ".ignore", &mut left);
        let git = rules(folder, ".gitignore", &mut left);
        self.folders.push(Folder {
            path: folder.to_owned(),
            own,
            git,
            bytes: before - left,
        });
    }
}

/// The rules in a file of a folder, if it is one that may be read.
fn rules(folder: &Path, name: &str, left: &mut u64) -> Option<Gitignore> {
    let most = MAX_FILE.min(*left);
    let (file, _) = open(&folder.join(name)).ok()?;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).ok()?;
    let size = bytes.len() as u64;
    if size > most {
        return None;
    }
    *left -= size;
    let text = String::from_utf8_lossy(&bytes);
    let mut builder = GitignoreBuilder::new(folder);
    for line in text.trim_start_matches('\u{feff}').lines() {
        // A line that makes no sense says nothing.
        let _ = builder.add_line(None, line);
    }
    builder.build().ok()
}
