//! Ignore rules of `.ignore` and `.gitignore`.
//!
//! The walker's own reader opens anything with these names: a named pipe would block the thread forever, and a link to a device would
//! fill the memory. This module reads only small regular files.

use std::io::Read;
use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::files::open::open;

/// Maximum size of an ignore file; larger ones are ignored.
const MAX_FILE: u64 = 256 * 1024;
/// Maximum size of all ignore files that apply to a folder.
const MAX_ALL: u64 = 1024 * 1024;

/// The rules of the current folder and its parents, in the order of a walk.
#[derive(Debug)]
pub(super) struct Ignored {
    /// The outermost folder first.
    folders: Vec<Folder>,
}

#[derive(Debug)]
struct Folder {
    path: PathBuf,
    /// Rules of `.ignore`, which take precedence over every `.gitignore`.
    ignore: Option<Gitignore>,
    git: Option<Gitignore>,
    bytes: u64,
}

impl Ignored {
    /// Starts with the rules of the parent folders, up to the root of the repository.
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

    /// Returns whether a path is ignored. Paths must be asked for in the order of a walk.
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
        // The nearest matching rule decides.
        let nearest_match = |rules: fn(&Folder) -> Option<&Gitignore>| {
            let nearest = self.folders.iter().rev().filter_map(rules);
            nearest
                .map(|rules| rules.matched(path, is_folder))
                .find(|matched| !matched.is_none())
        };
        let matched = nearest_match(|folder| folder.ignore.as_ref())
            .or_else(|| nearest_match(|folder| folder.git.as_ref()));
        matches!(matched, Some(Match::Ignore(_)))
    }

    fn enter(&mut self, folder: &Path) {
        let mut remaining_bytes =
            MAX_ALL.saturating_sub(self.folders.iter().map(|folder| folder.bytes).sum());
        let before = remaining_bytes;
        let ignore = rules(folder, ".ignore", &mut remaining_bytes);
        let git = rules(folder, ".gitignore", &mut remaining_bytes);
        self.folders.push(Folder {
            path: folder.to_owned(),
            ignore,
            git,
            bytes: before - remaining_bytes,
        });
    }
}

/// The rules of an ignore file, if it exists and is small enough.
fn rules(folder: &Path, name: &str, remaining_bytes: &mut u64) -> Option<Gitignore> {
    let limit = MAX_FILE.min(*remaining_bytes);
    let (file, _) = open(&folder.join(name)).ok()?;
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).ok()?;
    let size = bytes.len() as u64;
    if size > limit {
        return None;
    }
    *remaining_bytes -= size;
    let text = String::from_utf8_lossy(&bytes);
    let mut builder = GitignoreBuilder::new(folder);
    for line in text.trim_start_matches('\u{feff}').lines() {
        // Skip invalid lines.
        let _ = builder.add_line(None, line);
    }
    builder.build().ok()
}
