//! `.env` in the working directory: `KEY=VALUE` lines.
//!
//! Quotes, `export` and comments are understood. `$` stands for itself and a value ends with its line. The file may belong
//! to another program as well, so what cannot be read is a warning, never an error. A file that another user could have
//! written is ignored: starting the server in another user's folder would run it with that user's settings.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::read::small_text;
use crate::problem::Problem;
use crate::source::Origin;

/// What a `.env` file says: text and line by variable. The last line wins, as in a shell.
#[derive(Default)]
pub(crate) struct EnvFile {
    pub(crate) variables: BTreeMap<String, (String, usize)>,
    pub(crate) warnings: Vec<Problem>,
}

/// Reads the file, if there is one. A directory of that name is somebody's Python and none of our business.
pub(crate) fn read(path: &Path) -> EnvFile {
    let is_absent = |error: &io::Error| {
        matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::InvalidInput | io::ErrorKind::NotADirectory
        )
    };
    let ignored = |reason: String| EnvFile {
        variables: BTreeMap::new(),
        warnings: vec![Problem::new(format!(
            "`{}` is ignored: {reason}",
            path.display()
        ))],
    };
    let euid = rustix::process::geteuid().as_raw();
    // Of the link too, if it is one: its owner chooses the file.
    let link = fs::symlink_metadata(path).map(|link| foreign(link.uid(), 0, euid));
    match (small_text(path), link) {
        (Ok(_), Ok(Some(reason))) => ignored(reason),
        (Ok((text, metadata)), _) => match foreign(metadata.uid(), metadata.mode(), euid) {
            Some(reason) => ignored(reason),
            None => parse(&text, path),
        },
        (Err(error), _) if is_absent(&error) => EnvFile::default(),
        (Err(error), _) => ignored(error.to_string()),
    }
}

/// Says why a file with that owner and mode may be another user's work; `None` if it is not.
fn foreign(owner: u32, mode: u32, euid: u32) -> Option<String> {
    const WRITABLE_BY_ALL: u32 = 0o002;
    if owner != euid && owner != 0 {
        return Some(format!(
            "it belongs to user {owner}, and the server runs as user {euid}"
        ));
    }
    (mode & WRITABLE_BY_ALL != 0).then(|| "every user can write it".to_owned())
}

fn parse(text: &str, path: &Path) -> EnvFile {
    let mut file = EnvFile::default();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (index, line) in text.lines().enumerate() {
        match assignment(line) {
            Ok(None) => {}
            Ok(Some((name, value))) => {
                file.variables.insert(name.to_owned(), (value, index + 1));
            }
            Err(problem) => {
                file.warnings
                    .push(Problem::new(format!("the line is ignored: {problem}")).at(
                        Origin::File {
                            path: path.to_owned(),
                            line: index + 1,
                        },
                    ))
            }
        }
    }
    file
}

fn assignment(line: &str) -> Result<Option<(&str, String)>, &'static str> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let line = match line.strip_prefix("export") {
        Some(rest) if rest.starts_with([' ', '\t']) => rest.trim_start(),
        _ => line,
    };
    let (name, rest) = line.split_once('=').ok_or("there is no `=` in it")?;
    let name = name.trim_end();
    let is_name = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_name {
        return Err("it does not begin with the name of a variable");
    }
    Ok(Some((name, value(rest.trim_start())?)))
}

fn value(text: &str) -> Result<String, &'static str> {
    let (value, rest) = match text.chars().next() {
        Some('\'') => {
            let (value, rest) = text[1..].split_once('\'').ok_or(OPEN_QUOTE)?;
            (value.to_owned(), rest)
        }
        Some('"') => double_quoted(&text[1..])?,
        _ => return Ok(unquoted(text)),
    };
    let rest = rest.trim_start();
    match rest.is_empty() || rest.starts_with('#') {
        true => Ok(value),
        false => Err("there is more behind the closing quote"),
    }
}

const OPEN_QUOTE: &str = "a quote is not closed";

/// Reads up to the closing quote; returns what is behind it too.
fn double_quoted(text: &str) -> Result<(String, &str), &'static str> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Ok((value, &text[at + 1..])),
            '\\' => match chars.next().ok_or(OPEN_QUOTE)?.1 {
                'n' => value.push('\n'),
                'r' => value.push('\r'),
                't' => value.push('\t'),
                escaped @ ('"' | '\\' | '$' | '`') => value.push(escaped),
                other => value.extend(['\\', other]),
            },
            _ => value.push(c),
        }
    }
    Err(OPEN_QUOTE)
}

/// A `#` begins a comment only after a space: `a#b` is a value.
fn unquoted(text: &str) -> String {
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        if c == '#' && before.is_whitespace() {
            return text[..at].trim_end().to_owned();
        }
        before = c;
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_shells_and_others_write_them() {
        for (line, expected) in [
            ("PORT=8100", Some(("PORT", "8100"))),
            ("  export  PORT = 8100 ", Some(("PORT", "8100"))),
            ("exported=1", Some(("exported", "1"))),
            ("A='x # y'", Some(("A", "x # y"))),
            (
                "A=\"x \\\"y\\\" \\n \\$z \\q\" # note",
                Some(("A", "x \"y\" \n $z \\q")),
            ),
            ("A=x # note", Some(("A", "x"))),
            ("A=x#y", Some(("A", "x#y"))),
            ("A=# note", Some(("A", ""))),
            ("A=", Some(("A", ""))),
            ("A=b=c", Some(("A", "b=c"))),
            ("A=$HOME", Some(("A", "$HOME"))),
            ("A='é'", Some(("A", "é"))),
            ("# note", None),
            ("", None),
        ] {
            let expected = expected.map(|(name, value)| (name, value.to_owned()));
            assert_eq!(assignment(line), Ok(expected), "{line}");
        }
    }

    #[test]
    fn only_a_file_of_ours_or_of_root_counts() {
        assert_eq!(foreign(1000, 0o100_664, 1000), None);
        assert_eq!(foreign(0, 0o100_644, 1000), None);
        assert_eq!(
            foreign(1001, 0o100_600, 0).as_deref(),
            Some("it belongs to user 1001, and the server runs as user 0")
        );
        assert_eq!(
            foreign(0, 0o100_666, 0).as_deref(),
            Some("every user can write it")
        );
    }

    #[test]
    fn lines_that_mean_nothing_are_refused() {
        for line in [
            "PORT",
            "=1",
            "1A=x",
            "A B=x",
            "A='x",
            "A=\"x",
            "A=\"x\\",
            "A='x'y",
            "export =1",
        ] {
            assert!(assignment(line).is_err(), "{line}");
        }
    }

    #[test]
    fn the_last_line_wins_and_odd_lines_are_warnings_with_their_number() {
        let file = parse("\u{feff}A=1\r\nwhat\nA=2\n", Path::new("/w/.env"));
        assert_eq!(file.variables["A"], ("2".to_owned(), 3));
        let warnings: Vec<String> = file.warnings.iter().map(Problem::to_string).collect();
        assert_eq!(
            warnings,
            ["/w/.env:2: the line is ignored: there is no `=` in it"]
        );
    }
}
