//! Lines that match: `Grep`.

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

use super::one_line;
use super::walk::{End, Walk};
use crate::files::blocking::{Bounds, blocking};
use crate::files::open::open;
use crate::reply::{Answer, Problem, Reply};
use crate::tool::{Effect, Tool, tool};
use crate::workspace::Workspace;

/// So many lines are shown.
const MAX_MATCHES: usize = 200;
/// Longer lines are cut.
const MAX_LINE: usize = 500;
/// Most characters of one answer.
const MAX_SHOWN: usize = 30_000;
/// How long a search may take.
const TIME: Duration = Duration::from_secs(30);
/// What one line may take of memory while it is looked at.
const MAX_HEAP: usize = 16 * 1024 * 1024;
/// What a regular expression may take.
const MAX_REGEX: usize = 8 * 1024 * 1024;

#[derive(Deserialize, JsonSchema)]
struct GrepArguments {
    /// The regular expression (Rust's, as ripgrep has it); put (?i) before it to ignore case.
    pattern: String,
    /// The folder or file to look in; the workspace if left out.
    #[serde(default)]
    path: Option<String>,
    /// Only files whose name matches, such as "*.rs" or "*.{ts,tsx}".
    #[serde(default)]
    include: Option<String>,
}

/// What was found, for programs.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct GrepResult {
    /// The lines, in the order of paths and lines.
    matches: Vec<Match>,
    /// There is more than is shown.
    truncated: bool,
    /// Why, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// A line.
#[derive(Debug, Serialize, JsonSchema)]
struct Match {
    /// The file.
    path: String,
    /// The line's number, from one.
    line: u64,
    /// The line, cut at 500 characters.
    text: String,
}

/// The tool.
pub(super) fn grep_tool() -> Tool {
    tool::<GrepArguments, _, _>(
        "Grep",
        "Search in files",
        Effect::Looks,
        "Finds lines that match a regular expression, as ripgrep does: hidden files, binary files and what .gitignore \
         leaves out are not looked at. Answers with file:line:text, sorted by path, 200 lines at most.",
        |workshop, arguments, call| async move {
            let workspace = workshop.workspace.clone();
            let bounds = Bounds::new(&call.cancelled, TIME);
            blocking(move || grep(&workspace, &arguments, &bounds)).await
        },
    )
    .answers::<GrepResult>()
}

fn grep(workspace: &Workspace, arguments: &GrepArguments, bounds: &Bounds) -> Answer {
    let matcher = RegexMatcherBuilder::new()
        .line_terminator(Some(b'\n'))
        .size_limit(MAX_REGEX)
        .dfa_size_limit(MAX_REGEX)
        .build(&arguments.pattern)
        .map_err(|error| {
            Problem::new(format!(
                "the regular expression is wrong: {error}; escape what is meant literally with a backslash, and match \
                 one line at a time"
            ))
        })?;
    let root = start(workspace, arguments.path.as_deref())?;
    let walk = Walk::new(root).including(arguments.include.as_deref())?;
    let mut searcher = searcher();
    let mut found = Found::default();
    let end = walk.visit(bounds, |path| {
        found.look(&mut searcher, &matcher, workspace, path, bounds);
        if found.is_enough {
            WalkState::Quit
        } else {
            WalkState::Continue
        }
    });
    Ok(found.reply(&arguments.pattern, end))
}

/// Where a search begins: something that is there.
pub(super) fn start(workspace: &Workspace, path: Option<&str>) -> Result<PathBuf, Problem> {
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
        // A file that becomes shorter while it is mapped ends the process.
        .memory_map(MmapChoice::never())
        .heap_limit(Some(MAX_HEAP))
        .build()
}

/// A file that ends in a failure when the time is up: a search looks at nothing else while nothing matches.
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
struct Found {
    result: GrepResult,
    shown: String,
    files: usize,
    is_enough: bool,
}

impl Found {
    fn look(
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
        let name = workspace.shown(path);
        let before = self.result.matches.len();
        let sink = Lossy(|line, text| {
            if self.result.matches.len() == MAX_MATCHES || self.shown.len() > MAX_SHOWN {
                self.is_enough = true;
                return Ok(false);
            }
            let text = one_line(text, MAX_LINE);
            self.shown.push_str(&format!("{name}:{line}:{text}\n"));
            self.result.matches.push(Match {
                path: name.clone(),
                line,
                text,
            });
            Ok(!bounds.are_over())
        });
        // A file whose lines are too long to be lines, or that goes away meanwhile, has nothing for us.
        let source = Bounded { file, bounds };
        let _ = searcher.search_reader(matcher, source, sink);
        self.files += usize::from(self.result.matches.len() > before);
    }

    fn reply(mut self, pattern: &str, end: End) -> Reply {
        let mut text = self.shown;
        let count = self.result.matches.len();
        if count == 0 {
            text = format!("no line matches {pattern}\n");
        } else {
            text.push_str(&format!("[{count} lines in {} files]\n", self.files));
        }
        self.result.truncated = end != End::Whole;
        let note = match end {
            End::Whole => "",
            End::Enough => {
                "[cut: there are more matches; look in a folder or file of its own, or with a narrower pattern]\n"
            }
            End::Late => {
                "[not everything was looked at, the time was up: look in a smaller folder, or use include]\n"
            }
        };
        text.push_str(note);
        self.result.note = super::note(note);
        Reply::text(text).with_structured(self.result)
    }
}
