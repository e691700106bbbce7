//! Code that matches code: `ASTGrep`.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
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
use crate::files::blocking::{Bounds, deep};
use crate::files::open::open;
use crate::reply::{Answer, Problem, Reply};
use crate::tool::{Effect, Tool, tool};
use crate::workspace::Workspace;

/// So many places are shown.
const MAX_MATCHES: usize = 100;
/// So many lines of each.
const MAX_LINES: usize = 10;
/// Longer lines are cut.
const MAX_LINE: usize = 300;
/// Most characters of one answer.
const MAX_SHOWN: usize = 30_000;
/// Longest pattern.
const MAX_PATTERN: usize = 2_000;
/// Larger files are made by programs.
const MAX_FILE: u64 = 1024 * 1024;
/// How long a search may take.
const TIME: Duration = Duration::from_secs(30);

#[derive(Deserialize, JsonSchema)]
struct TreeArguments {
    /// Code with holes: $NAME stands for one part, $$$NAME for any number of them. For example: "console.log($$$ARGS)".
    pattern: String,
    /// The folder or file to look in; the workspace if left out.
    #[serde(default)]
    path: Option<String>,
    /// Only files whose name matches, such as "*.ts".
    #[serde(default)]
    include: Option<String>,
    /// The language of the pattern; only its files are looked at. If left out, each file's own: bash, c, cpp, css, go,
    /// html, java, javascript, json, python, rust, tsx, typescript, yaml.
    #[serde(default)]
    language: Option<String>,
}

/// What was found, for programs.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct TreeResult {
    /// The places, in the order of paths.
    matches: Vec<Match>,
    /// There is more than is shown.
    truncated: bool,
    /// What was left out, why, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// A place in the code.
#[derive(Debug, Serialize, JsonSchema)]
struct Match {
    /// The file.
    path: String,
    /// The number of its first line.
    line: usize,
    /// The number of its last line.
    end_line: usize,
    /// The language it was read as.
    language: &'static str,
    /// The code, cut after ten lines.
    text: String,
}

/// The tool.
pub(super) fn tree_tool() -> Tool {
    tool::<TreeArguments, _, _>(
        "ASTGrep",
        "Search in code by its structure",
        Effect::Looks,
        "Finds code that has the structure of a pattern, whatever its spaces and line ends, as ast-grep does. Hidden files \
         and what .gitignore leaves out are not looked at. Answers with file:line and the code, sorted by path, 100 places \
         at most.",
        |workshop, arguments, call| async move {
            let workspace = workshop.workspace.clone();
            let bounds = Bounds::new(&call.cancelled, TIME);
            let own_bounds = bounds.clone();
            deep(&bounds, move || search(&workspace, &arguments, &own_bounds)).await
        },
    )
    .answers::<TreeResult>()
}

fn search(workspace: &Workspace, arguments: &TreeArguments, bounds: &Bounds) -> Answer {
    if arguments.pattern.trim().is_empty() || arguments.pattern.len() > MAX_PATTERN {
        return Err(Problem::new(format!(
            "the pattern is empty or has more than {MAX_PATTERN} bytes: give a piece of code"
        )));
    }
    let language = arguments
        .language
        .as_deref()
        .filter(|name| !name.is_empty());
    let language = language.map(languages::named).transpose()?;
    let root = start(workspace, arguments.path.as_deref())?;
    // A file that is named is read as the language that is named, whatever its own name says.
    let is_one_file = root.is_file();
    let walk = Walk::new(root).including(arguments.include.as_deref())?;
    let mut patterns = Patterns {
        source: &arguments.pattern,
        built: BTreeMap::new(),
    };
    if let Some(language) = language {
        patterns.of(language).map_err(wrong)?;
    }
    let mut found = Found::default();
    let end = walk.visit(bounds, |path| {
        let own = match language {
            Some(language) if is_one_file => Some(language),
            Some(language) => languages::of(path).filter(|own| *own == language),
            None => languages::of(path),
        };
        if let Some(own) = own
            && let Ok(pattern) = patterns.of(own)
        {
            found.look(workspace, path, own, pattern, bounds);
        }
        if found.is_enough {
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
        return Err(wrong(mistake));
    }
    Ok(found.reply(end))
}

fn wrong(mistake: &String) -> Problem {
    Problem::new(format!(
        "the pattern is not code of that language: {mistake}; give one complete expression, statement or declaration"
    ))
}

/// The pattern in every language it was needed in.
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
                // The parser makes something of everything.
                if pattern.has_error() {
                    return Err(format!(
                        "{} cannot be read as {}",
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
struct Found {
    result: TreeResult,
    shown: String,
    is_enough: bool,
    /// How many files were nested too deeply.
    too_deep: usize,
}

impl Found {
    fn look(
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
        let name = workspace.shown(path);
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
            if self.result.matches.len() == MAX_MATCHES || self.shown.len() > MAX_SHOWN {
                self.is_enough = true;
                return;
            }
            let (line, end_line) = (place.start_pos().line() + 1, place.end_pos().line() + 1);
            let text = shortened(&place.text());
            self.shown.push_str(&format!("{name}:{line}:\n{text}"));
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
        let mut text = self.shown;
        if self.result.matches.is_empty() {
            text = "no code matches the pattern\n".to_owned();
        } else {
            text.push_str(&format!("[{} places]\n", self.result.matches.len()));
        }
        let mut note = String::new();
        if self.too_deep > 0 {
            note = format!(
                "[{} files were left out: their code is nested more than {MAX_DEPTH} deep]\n",
                self.too_deep
            );
        }
        self.result.truncated = end != End::Whole;
        note.push_str(match end {
            End::Whole => "",
            End::Enough => {
                "[cut: there are more; look in a smaller folder, or with a narrower pattern]\n"
            }
            End::Late => {
                "[not everything was looked at, the time was up: look in a smaller folder]\n"
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
