//! All files below a folder, as ripgrep sees them: without hidden ones and without what `.gitignore` and `.ignore` leave out.
//! Links are never followed, so a walk that begins inside of the workspace stays there.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use globset::{Glob, GlobBuilder, GlobMatcher};
use ignore::{WalkBuilder, WalkState};

use super::ignored::Ignored;
use crate::files::blocking::Bounds;
use crate::reply::Problem;

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Everything was seen.
    Whole,
    /// The visitor had enough.
    Enough,
    /// The time was up.
    Late,
}

/// Which files are seen.
#[derive(Debug)]
pub(crate) struct Walk {
    root: PathBuf,
    include: Option<GlobMatcher>,
    with_hidden: bool,
    depth: Option<usize>,
}

impl Walk {
    /// All below a folder, or a file alone, which is seen whatever it is called.
    pub(crate) fn new(root: PathBuf) -> Self {
        Self {
            root,
            include: None,
            with_hidden: false,
            depth: None,
        }
    }

    /// Only those whose name or path from the root on matches.
    pub(super) fn including(mut self, include: Option<&str>) -> Result<Self, Problem> {
        if let Some(include) = include.filter(|include| !include.is_empty()) {
            self.include = Some(pattern(include)?);
        }
        Ok(self)
    }

    /// Hidden ones too.
    pub(super) fn with_hidden(mut self, with_hidden: bool) -> Self {
        self.with_hidden = with_hidden;
        self
    }

    /// Not deeper than this.
    pub(crate) fn at_most(mut self, depth: usize) -> Self {
        self.depth = Some(depth);
        self
    }

    /// Visits every regular file in the order of their paths until the visitor says [`WalkState::Quit`].
    pub(crate) fn visit(
        &self,
        bounds: &Bounds,
        mut visitor: impl FnMut(&Path) -> WalkState,
    ) -> End {
        let ignored = Mutex::new(Ignored::above(&self.root));
        let own_bounds = bounds.clone();
        let walk = WalkBuilder::new(&self.root)
            // It opens no file of rules itself.
            .standard_filters(false)
            .follow_links(false)
            .hidden(!self.with_hidden)
            .max_depth(self.depth)
            .filter_entry(move |entry| {
                if entry.file_name() == ".git" || own_bounds.are_over() {
                    return false;
                }
                let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
                let mut ignored = ignored.lock().unwrap_or_else(PoisonError::into_inner);
                !ignored.has(entry.path(), is_folder)
            })
            .sort_by_file_path(Path::cmp)
            .build();
        // What cannot be read is not there for this user.
        for entry in walk.filter_map(Result::ok) {
            if bounds.are_over() {
                return End::Late;
            }
            let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
            if is_file && self.includes(entry.path()) && visitor(entry.path()) == WalkState::Quit {
                return End::Enough;
            }
        }
        // The last file may not have been looked through.
        if bounds.are_over() {
            End::Late
        } else {
            End::Whole
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

/// A pattern of names: `*` stays in a folder, `**` does not.
pub(super) fn pattern(pattern: &str) -> Result<GlobMatcher, Problem> {
    let built: Result<Glob, _> = GlobBuilder::new(pattern).literal_separator(true).build();
    built.map(|glob| glob.compile_matcher()).map_err(|error| {
        Problem::new(format!(
            "the pattern of names is wrong: {error}; write it like \"*.rs\", \"src/**/*.{{ts,tsx}}\" or \"[a-c]?.txt\""
        ))
    })
}
