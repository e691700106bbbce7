//! Splits a line into commands.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

/// One command of a line, and when it runs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) condition: Condition,
    pub(super) action: Action,
}

/// Which result of the command before lets a command run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    Always,
    Success,
    Failure,
}

/// What a command does.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Runs a command with its arguments.
    Run(Vec<String>, Vec<Redirect>),
    /// Waits until a file exists, as the loops of tests do.
    WaitForFile(String),
}

/// Where an output goes: 0 is standard output, 1 is standard error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Redirect {
    File {
        from: usize,
        path: String,
        is_append: bool,
    },
    Join {
        from: usize,
        to: usize,
    },
}

const SEPARATORS: [(&str, Condition); 4] = [
    (";", Condition::Always),
    ("\n", Condition::Always),
    ("&&", Condition::Success),
    ("||", Condition::Failure),
];

/// Operators with the output they redirect; the longer ones first.
const FILE_REDIRECTS: [(&str, usize, bool); 6] = [
    ("1>>", 0, true),
    ("2>>", 1, true),
    (">>", 0, true),
    ("1>", 0, false),
    ("2>", 1, false),
    (">", 0, false),
];

/// A loop that waits for a file.
static WAIT_LOOP: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let pattern = r"^(?:until \[ -e (\S+) \]|while \[ ! -e (\S+) \]); do sleep [0-9.]+; done";
    Regex::new(pattern).ok()
});

/// Splits a line into commands with their variables replaced; none when it uses more of a shell's syntax than that.
pub(super) fn parse(line: &str, env: &BTreeMap<String, String>, home: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut condition = Condition::Always;
    let (mut arguments, mut redirects) = (Vec::new(), Vec::new());
    let mut rest = line;
    loop {
        rest = rest.trim_start_matches([' ', '\t']);
        let separator = SEPARATORS.iter().find(|(text, _)| rest.starts_with(text));
        if rest.is_empty() || separator.is_some() {
            if !arguments.is_empty() || !redirects.is_empty() {
                let action = Action::Run(
                    std::mem::take(&mut arguments),
                    std::mem::take(&mut redirects),
                );
                steps.push(Step { condition, action });
            }
            let Some((text, next)) = separator else {
                return Some(steps);
            };
            (condition, rest) = (*next, &rest[text.len()..]);
            continue;
        }
        let wait = WAIT_LOOP
            .as_ref()
            .and_then(|pattern| pattern.captures(rest));
        if let (Some(wait), true) = (wait, arguments.is_empty()) {
            let path = wait.get(1).or(wait.get(2))?.as_str().to_owned();
            let action = Action::WaitForFile(path);
            steps.push(Step { condition, action });
            rest = &rest[wait[0].len()..];
        } else if let Some(after) = rest.strip_prefix("2>&1") {
            redirects.push(Redirect::Join { from: 1, to: 0 });
            rest = after;
        } else if let Some(after) = rest.strip_prefix("1>&2").or(rest.strip_prefix(">&2")) {
            redirects.push(Redirect::Join { from: 0, to: 1 });
            rest = after;
        } else if let Some((operator, from, is_append)) = FILE_REDIRECTS
            .into_iter()
            .find(|(operator, ..)| rest.starts_with(operator))
        {
            let target = rest[operator.len()..].trim_start();
            let (path, after) = word(target, env, home)?;
            redirects.push(Redirect::File {
                from,
                path,
                is_append,
            });
            rest = after;
        } else {
            let (text, after) = word(rest, env, home)?;
            arguments.push(text);
            rest = after;
        }
    }
}

/// Reads one word with its quotes and variables; returns it and what follows.
fn word<'a>(
    text: &'a str,
    env: &BTreeMap<String, String>,
    home: &str,
) -> Option<(String, &'a str)> {
    let mut word = String::new();
    let mut rest = text;
    if let Some(after) = text.strip_prefix('~')
        && !after.starts_with(|next: char| next.is_alphanumeric())
    {
        word.push_str(home);
        rest = after;
    }
    let mut is_quoted = false;
    while let Some(character) = rest.chars().next() {
        let after = &rest[character.len_utf8()..];
        rest = match character {
            '"' => {
                is_quoted = !is_quoted;
                after
            }
            '\'' if !is_quoted => {
                let (text, after) = after.split_once('\'')?;
                word.push_str(text);
                after
            }
            '\\' => {
                let escaped = after.chars().next()?;
                if is_quoted && !"\"\\$`".contains(escaped) {
                    word.push('\\');
                }
                word.push(escaped);
                &after[escaped.len_utf8()..]
            }
            '$' => {
                let (name, after) = variable(after)?;
                word.push_str(env.get(name).map_or("", String::as_str));
                after
            }
            '`' => return None,
            ' ' | '\t' | '\n' | ';' | '|' | '&' | '>' if !is_quoted => break,
            '<' | '(' | ')' | '{' | '}' | '[' | '*' | '?' | '#' | '!' if !is_quoted => return None,
            character => {
                word.push(character);
                after
            }
        };
    }
    // A word without any character would be an operator that is not supported, such as a pipe.
    (!is_quoted && rest.len() < text.len()).then_some((word, rest))
}

/// Reads the name of a variable after its `$`; returns it and what follows.
fn variable(text: &str) -> Option<(&str, &str)> {
    let is_name = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    if let Some(braced) = text.strip_prefix('{') {
        return braced.split_once('}').filter(|(name, _)| is_name(name));
    }
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let (name, after) = text.split_at(end.unwrap_or(text.len()));
    is_name(name).then_some((name, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Option<Vec<Step>> {
        let env = BTreeMap::from([("NAME".to_owned(), "a value".to_owned())]);
        parse(line, &env, "/home/user")
    }

    fn run(condition: Condition, arguments: &[&str], redirects: Vec<Redirect>) -> Step {
        let arguments = arguments.iter().map(|word| (*word).to_owned()).collect();
        let action = Action::Run(arguments, redirects);
        Step { condition, action }
    }

    #[test]
    fn lines_are_split_into_commands_with_conditions_and_redirects() {
        let file = |from, path: &str, is_append| Redirect::File {
            from,
            path: path.to_owned(),
            is_append,
        };
        let expected = vec![
            run(
                Condition::Always,
                &["echo", "a value", "$NAME \"", "/home/user/x", "a~;"],
                vec![file(0, "/f", false), Redirect::Join { from: 1, to: 0 }],
            ),
            run(Condition::Success, &["cat", ""], vec![file(1, "e", true)]),
            run(Condition::Failure, &["exit", "3"], vec![]),
        ];
        let line = r#"echo "${NAME}" '$NAME "' ~/x a~\; >/f 2>&1 && cat "" 2>> e || exit 3;"#;
        assert_eq!(parsed(line), Some(expected));
        assert_eq!(parsed(" ; "), Some(vec![]));
    }

    #[test]
    fn a_loop_that_waits_for_a_file_is_one_step() {
        for wait in ["until [ -e /f ]", "while [ ! -e /f ]"] {
            let steps = parsed(&format!("{wait}; do sleep 0.05; done; echo x")).unwrap();
            assert_eq!(steps[0].action, Action::WaitForFile("/f".to_owned()));
            assert_eq!(steps[1], run(Condition::Always, &["echo", "x"], vec![]));
        }
    }

    #[test]
    fn other_syntax_is_refused() {
        for line in [
            "a | b",
            "a &",
            "echo $(date)",
            "echo `date`",
            "ls *.c",
            "cat <<EOF",
            "cat < f",
            "if [ -f f ]; then echo x; fi",
            "while true; do sleep 1; done | cat",
            "echo $?",
            "echo ${A:-b}",
            "echo \"open",
            "echo 'open",
            "echo x >",
            "! true",
        ] {
            assert_eq!(parsed(line), None, "{line}");
        }
    }
}
