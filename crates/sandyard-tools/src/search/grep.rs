//! `Grep`: lines that match a regular expression.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::sinks::Lossy;
use grep_searcher::{BinaryDetection, MmapChoice, Searcher, SearcherBuilder};
use ignore::WalkState;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::walk::{End, Walk};
use super::{one_line, search_tool};
use crate::files::blocking::Bounds;
use crate::files::open::open;
use crate::reply::{Answer, Problem, Reply, Result};
use crate::tool::Tool;
use crate::workspace::Workspace;

/// Maximum number of lines in a reply.
const MAX_MATCHES: usize = 200;
/// Maximum number of characters of a line.
const MAX_LINE: usize = 500;
/// Maximum length of a reply.
const MAX_SHOWN: usize = 30_000;
/// Time limit of a search.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// Maximum memory for a line, in bytes.
const MAX_HEAP: usize = 16 * 1024 * 1024;
/// Maximum memory for a regular expression, in bytes.
const MAX_REGEX: usize = 8 * 1024 * 1024;

#[derive(Deserialize, JsonSchema)]
struct GrepArguments {
    /// Regular expression in Rust syntax, as in ripgrep; prefix it with (?i) to ignore case.
    pattern: String,
    /// Folder or file to search, absolute or relative to the workspace (default: the workspace).
    path: Option<String>,
    /// Search only files whose name matches this pattern, for example "*.rs" or "*.{ts,tsx}".
    include: Option<String>,
}

/// The structured result.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct GrepResult {
    /// Matching lines, sorted by path and line.
    matches: Vec<Match>,
    /// Whether there may be more matches.
    truncated: bool,
    /// Why, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// A matching line.
#[derive(Debug, Serialize, JsonSchema)]
struct Match {
    /// Path of the file.
    path: String,
    /// Line number, starting with 1.
    line: u64,
    /// The line, truncated to 500 characters.
    text: String,
}

/// The tool.
pub(super) fn grep_tool() -> Tool {
    search_tool("Grep", TIME_LIMIT, grep)
        .title("Search in files")
        .description("Search files for lines that match a regular expression, like ripgrep. Skips hidden, binary and git-ignored files. Returns \
         file:line:text, sorted by path, at most 200 lines.")
        .with_output::<GrepResult>()
}

fn grep(workspace: &Workspace, arguments: GrepArguments, bounds: &Bounds) -> Answer {
    let matcher = RegexMatcherBuilder::new()
        .line_terminator(Some(b'\n'))
        .size_limit(MAX_REGEX)
        .dfa_size_limit(MAX_REGEX)
        .build(&arguments.pattern)
        .map_err(|error| {
            Problem::new(format!(
                "invalid regular expression: {error}; escape literal characters with a backslash, and match one line at a time"
            ))
        })?;
    let root = start(workspace, arguments.path.as_deref())?;
    let walk = Walk::new(root).including(arguments.include.as_deref())?;
    let mut searcher = searcher();
    let mut matches = Matches::default();
    let end = walk.visit(bounds, |path| {
        matches.search_file(&mut searcher, &matcher, workspace, path, bounds);
        if matches.is_full {
            WalkState::Quit
        } else {
            WalkState::Continue
        }
    });
    Ok(matches.reply(&arguments.pattern, end))
}

/// Resolves the path to search, which must exist.
pub(super) fn start(workspace: &Workspace, path: Option<&str>) -> Result<PathBuf> {
    let path = workspace.resolve(path.filter(|path| !path.is_empty()).unwrap_or("."))?;
    match path.symlink_metadata() {
        Ok(_) => Ok(path),
        Err(error) => Err(crate::files::open::failed(&path, "searched", &error)),
    }
}

fn searcher() -> Searcher {
    SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .line_number(true)
        // A mapped file that is truncated meanwhile would crash the process.
        .memory_map(MmapChoice::never())
        .heap_limit(Some(MAX_HEAP))
        .build()
}

/// A file that fails when the time is up. The searcher does not check the time while nothing matches.
struct Bounded<'a> {
    file: File,
    bounds: &'a Bounds,
}

impl Read for Bounded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.bounds.are_over() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.file.read(buffer)
    }
}

#[derive(Default)]
struct Matches {
    result: GrepResult,
    text: String,
    files: usize,
    is_full: bool,
}

impl Matches {
    fn search_file(
        &mut self,
        searcher: &mut Searcher,
        matcher: &RegexMatcher,
        workspace: &Workspace,
        path: &Path,
        bounds: &Bounds,
    ) {
        let Ok((file, _)) = open(path) else {
            return;
        };
        let name = workspace.display(path);
        let before = self.result.matches.len();
        let sink = Lossy(|line, text| {
            if self.result.matches.len() == MAX_MATCHES || self.text.len() > MAX_SHOWN {
                self.is_full = true;
                return Ok(false);
            }
            let text = one_line(text, MAX_LINE);
            self.text.push_str(&format!("{name}:{line}:{text}\n"));
            self.result.matches.push(Match {
                path: name.clone(),
                line,
                text,
            });
            Ok(!bounds.are_over())
        });
        // Ignore files that cannot be read or whose lines are too long.
        let source = Bounded { file, bounds };
        let _ = searcher.search_reader(matcher, source, sink);
        self.files += usize::from(self.result.matches.len() > before);
    }

    fn reply(mut self, pattern: &str, end: End) -> Reply {
        let mut text = self.text;
        let count = self.result.matches.len();
        if count == 0 {
            text = format!("no line matches {pattern}\n");
        } else {
            text.push_str(&format!("[{count} lines in {} files]\n", self.files));
        }
        self.result.truncated = end != End::Complete;
        let note = match end {
            End::Complete => "",
            End::Stopped => {
                "[truncated: there are more matches; search a smaller folder or use a narrower pattern]\n"
            }
            End::TimedOut => {
                "[incomplete: the time limit was reached; search a smaller folder, or use include]\n"
            }
        };
        text.push_str(note);
        self.result.note = super::note(note);
        Reply::text(text).with_structured(self.result)
    }
}
