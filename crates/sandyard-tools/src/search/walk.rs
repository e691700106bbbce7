//! Walks all files below a folder like ripgrep: without hidden files and without those that `.gitignore` and `.ignore` exclude. Links
//! are not followed, so a walk that starts in the workspace stays there.

use std::path::{Path, PathBuf};

use globset::{Glob, GlobBuilder, GlobMatcher};
use ignore::{WalkBuilder, WalkState};
use parking_lot::Mutex;

use super::ignored::Ignored;
use crate::files::blocking::Bounds;
use crate::reply::{Problem, Result};

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// All files were visited.
    Complete,
    /// The visitor stopped it.
    Stopped,
    /// The time was up.
    TimedOut,
}

/// Which files to visit.
#[derive(Debug)]
pub(crate) struct Walk {
    root: PathBuf,
    include: Option<GlobMatcher>,
    with_hidden: bool,
    depth: Option<usize>,
}

impl Walk {
    /// All files below a folder. If the root is a file, only that file, whatever its name is.
    pub(crate) fn new(root: PathBuf) -> Self {
        Self {
            root,
            include: None,
            with_hidden: false,
            depth: None,
        }
    }

    /// Visits only files whose name or relative path matches.
    pub(super) fn including(mut self, include: Option<&str>) -> Result<Self> {
        if let Some(include) = include.filter(|include| !include.is_empty()) {
            self.include = Some(pattern(include)?);
        }
        Ok(self)
    }

    /// Also visits hidden files.
    pub(super) fn with_hidden(mut self, with_hidden: bool) -> Self {
        self.with_hidden = with_hidden;
        self
    }

    /// Limits the depth.
    pub(crate) fn max_depth(mut self, depth: usize) -> Self {
        self.depth = Some(depth);
        self
    }

    /// Visits every regular file in order of paths until the visitor returns [`WalkState::Quit`].
    pub(crate) fn visit(
        &self,
        bounds: &Bounds,
        mut visitor: impl FnMut(&Path) -> WalkState,
    ) -> End {
        let ignored = Mutex::new(Ignored::above(&self.root));
        let own_bounds = bounds.clone();
        let walk = WalkBuilder::new(&self.root)
            // `Ignored` reads the ignore files.
            .standard_filters(false)
            .follow_links(false)
            .hidden(!self.with_hidden)
            .max_depth(self.depth)
            .filter_entry(move |entry| {
                if entry.file_name() == ".git" || own_bounds.are_over() {
                    return false;
                }
                let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
                let mut ignored = ignored.lock();
                !ignored.has(entry.path(), is_folder)
            })
            .sort_by_file_path(Path::cmp)
            .build();
        // Skip what cannot be read.
        for entry in walk.filter_map(Result::ok) {
            if bounds.are_over() {
                return End::TimedOut;
            }
            let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
            if is_file && self.includes(entry.path()) && visitor(entry.path()) == WalkState::Quit {
                return End::Stopped;
            }
        }
        // The last file may not have been searched completely.
        if bounds.are_over() {
            End::TimedOut
        } else {
            End::Complete
        }
    }

    fn includes(&self, path: &Path) -> bool {
        let Some(include) = &self.include else {
            return true;
        };
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        include.is_match(below) || path.file_name().is_some_and(|name| include.is_match(name))
    }
}

/// Parses a glob pattern: `*` matches within a folder, `**` across folders.
pub(super) fn pattern(pattern: &str) -> Result<GlobMatcher> {
    let built: Result<Glob, _> = GlobBuilder::new(pattern).literal_separator(true).build();
    built.map(|glob| glob.compile_matcher()).map_err(|error| {
        Problem::new(format!(
            "invalid file pattern: {error}; examples: \"*.rs\", \"src/**/*.{{ts,tsx}}\" or \"[a-c]?.txt\""
        ))
    })
}
