//! `ASTGrep`: code that matches a code pattern.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ast_grep_core::matcher::MatcherExt;
use ast_grep_core::tree_sitter::StrDoc;
use ast_grep_core::{AstGrep, Matcher, Pattern};
use ast_grep_language::SupportLang;
use ignore::WalkState;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::grep::start;
use super::languages;
use super::one_line;
use super::parse::{MAX_DEPTH, STEPS, is_too_deep, parse};
use super::walk::{End, Walk};
use crate::call::Call;
use crate::files::blocking::{Bounds, deep};
use crate::files::open::open;
use crate::reply::{Answer, Problem, Reply};
use crate::tool::{Effect, Tool, tool};
use crate::tool_state::ToolState;
use crate::workspace::Workspace;

/// Maximum number of matches in a reply.
const MAX_MATCHES: usize = 100;
/// Maximum number of lines of a match.
const MAX_LINES: usize = 10;
/// Maximum number of characters of a line.
const MAX_LINE: usize = 300;
/// Maximum length of a reply.
const MAX_SHOWN: usize = 30_000;
/// Maximum length of a pattern.
const MAX_PATTERN: usize = 2_000;
/// Maximum size of a file; larger files are generated.
const MAX_FILE: u64 = 1024 * 1024;
/// Time limit of a search.
const TIME_LIMIT: Duration = Duration::from_secs(30);

#[derive(Deserialize, JsonSchema)]
struct TreeArguments {
    /// Code with placeholders: $NAME matches one node, $$$NAME matches any number of nodes. Example: "console.log($$$ARGS)".
    pattern: String,
    /// Folder or file to search, absolute or relative to the workspace (default: the workspace).
    path: Option<String>,
    /// Search only files whose name matches this pattern, for example "*.ts".
    include: Option<String>,
    /// Language of the pattern; only its files are searched (default: the language of each file). One of bash, c, cpp, css, go,
    /// html, java, javascript, json, python, rust, tsx, typescript, yaml.
    language: Option<String>,
}

/// The structured result.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct TreeResult {
    /// Matches, sorted by path.
    matches: Vec<Match>,
    /// Whether there may be more matches.
    truncated: bool,
    /// What was left out, why, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// A match.
#[derive(Debug, Serialize, JsonSchema)]
struct Match {
    /// Path of the file.
    path: String,
    /// Number of the first line.
    line: usize,
    /// Number of the last line.
    end_line: usize,
    /// Language of the match.
    language: &'static str,
    /// The code, at most ten lines.
    text: String,
}

/// The tool.
pub(super) fn tree_tool() -> Tool {
    tool("ASTGrep", Effect::Reads, search_tree)
        .title("Search code by structure")
        .description("Find code with the structure of a pattern, regardless of whitespace and line breaks, like ast-grep. Skips hidden and git-ignored \
         files. Returns file:line and the code, sorted by path, at most 100 matches.")
        .with_output::<TreeResult>()
}

async fn search_tree(tool_state: Arc<ToolState>, arguments: TreeArguments, call: Call) -> Answer {
    let bounds = Bounds::new(&call.cancelled, TIME_LIMIT);
    let own_bounds = bounds.clone();
    let work = move || search(&tool_state.workspace, &arguments, &own_bounds);
    deep(&bounds, work).await
}

fn search(workspace: &Workspace, arguments: &TreeArguments, bounds: &Bounds) -> Answer {
    if arguments.pattern.trim().is_empty() || arguments.pattern.len() > MAX_PATTERN {
        return Err(Problem::new(format!(
            "the pattern is empty or longer than {MAX_PATTERN} bytes: give a piece of code"
        )));
    }
    let language = arguments
        .language
        .as_deref()
        .filter(|name| !name.is_empty());
    let language = language.map(languages::by_name).transpose()?;
    let root = start(workspace, arguments.path.as_deref())?;
    // A single file is parsed as the given language, whatever its extension is.
    let is_one_file = root.is_file();
    let walk = Walk::new(root).including(arguments.include.as_deref())?;
    let mut patterns = Patterns {
        source: &arguments.pattern,
        built: BTreeMap::new(),
    };
    if let Some(language) = language {
        patterns.of(language).map_err(invalid_pattern)?;
    }
    let mut matches = Matches::default();
    let end = walk.visit(bounds, |path| {
        let own = match language {
            Some(language) if is_one_file => Some(language),
            Some(language) => languages::of(path).filter(|own| *own == language),
            None => languages::of(path),
        };
        if let Some(own) = own
            && let Ok(pattern) = patterns.of(own)
        {
            matches.search_file(workspace, path, own, pattern, bounds);
        }
        if matches.is_full {
            WalkState::Quit
        } else {
            WalkState::Continue
        }
    });
    let mistakes: Vec<_> = patterns
        .built
        .values()
        .filter_map(|built| built.as_ref().err())
        .collect();
    if let Some(mistake) = mistakes.first()
        && mistakes.len() == patterns.built.len()
    {
        return Err(invalid_pattern(mistake));
    }
    Ok(matches.reply(end))
}

fn invalid_pattern(mistake: &String) -> Problem {
    Problem::new(format!(
        "the pattern is not valid code: {mistake}; give one complete expression, statement or declaration"
    ))
}

/// The pattern, parsed in each language that is needed.
struct Patterns<'a> {
    source: &'a str,
    built: BTreeMap<&'static str, Result<Pattern, String>>,
}

impl Patterns<'_> {
    fn of(&mut self, language: SupportLang) -> Result<&Pattern, &String> {
        let built = self
            .built
            .entry(languages::name(language))
            .or_insert_with(|| {
                let pattern =
                    Pattern::try_new(self.source, language).map_err(|error| error.to_string())?;
                // The parser accepts everything, but marks errors.
                if pattern.has_error() {
                    return Err(format!(
                        "{} cannot be parsed as {}",
                        self.source,
                        languages::name(language)
                    ));
                }
                Ok(pattern)
            });
        built.as_ref()
    }
}

#[derive(Default)]
struct Matches {
    result: TreeResult,
    text: String,
    is_full: bool,
    /// Number of files that are nested too deeply.
    too_deep: usize,
}

impl Matches {
    fn search_file(
        &mut self,
        workspace: &Workspace,
        path: &Path,
        language: SupportLang,
        pattern: &Pattern,
        bounds: &Bounds,
    ) {
        let Some(text) = text(path) else {
            return;
        };
        let name = workspace.display(path);
        let Some(tree) = parse(&text, language, bounds) else {
            return;
        };
        match is_too_deep(&tree, bounds) {
            Some(false) => {}
            Some(true) => {
                self.too_deep += 1;
                return;
            }
            None => return,
        }
        let tree = AstGrep::doc(StrDoc {
            src: text,
            lang: language,
            tree,
        });
        let kinds = pattern.potential_kinds();
        for (number, part) in tree.root().dfs().enumerate() {
            if number % STEPS == 0 && bounds.are_over() {
                return;
            }
            if let Some(kinds) = &kinds
                && !kinds.contains(part.kind_id().into())
            {
                continue;
            }
            let Some(place) = pattern.match_node(part) else {
                continue;
            };
            if self.result.matches.len() == MAX_MATCHES || self.text.len() > MAX_SHOWN {
                self.is_full = true;
                return;
            }
            let (line, end_line) = (place.start_pos().line() + 1, place.end_pos().line() + 1);
            let text = shortened(&place.text());
            self.text.push_str(&format!("{name}:{line}:\n{text}"));
            self.result.matches.push(Match {
                path: name.clone(),
                line,
                end_line,
                language: languages::name(language),
                text,
            });
        }
    }

    fn reply(mut self, end: End) -> Reply {
        let mut text = self.text;
        if self.result.matches.is_empty() {
            text = "no code matches the pattern\n".to_owned();
        } else {
            text.push_str(&format!("[{} matches]\n", self.result.matches.len()));
        }
        let mut note = String::new();
        if self.too_deep > 0 {
            note = format!(
                "[{} files were skipped: their code is nested deeper than {MAX_DEPTH} levels]\n",
                self.too_deep
            );
        }
        self.result.truncated = end != End::Complete;
        note.push_str(match end {
            End::Complete => "",
            End::Stopped => {
                "[truncated: there are more matches; search a smaller folder or use a narrower pattern]\n"
            }
            End::TimedOut => {
                "[incomplete: the time limit was reached; search a smaller folder]\n"
            }
        });
        text.push_str(&note);
        self.result.note = super::note(&note);
        Reply::text(text).with_structured(self.result)
    }
}

fn text(path: &Path) -> Option<String> {
    let (file, _) = open(path).ok()?;
    let mut text = String::new();
    file.take(MAX_FILE + 1).read_to_string(&mut text).ok()?;
    (text.len() as u64 <= MAX_FILE).then_some(text)
}

fn shortened(code: &str) -> String {
    let mut text = String::new();
    for line in code.lines().take(MAX_LINES) {
        text.push_str(&format!("    {}\n", one_line(line, MAX_LINE)));
    }
    let more = code.lines().count().saturating_sub(MAX_LINES);
    if more > 0 {
        text.push_str(&format!("    [{more} more lines]\n"));
    }
    text
}
