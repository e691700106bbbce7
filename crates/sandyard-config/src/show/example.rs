//! The example file: every setting, commented out, with its default.

use std::fmt::Write as _;

use crate::setting::{Section, Setting};
use crate::table;

/// Columns of a comment, its `# ` included.
const WIDTH: usize = 100;

const HEAD: &str = "Settings of Sandyard. Copy this to /etc/sandyard/sandyard.toml or <data directory>/sandyard.toml; the first \
    of `--config FILE`, $SANDYARD_CONFIG, the data directory's and the one in /etc is read, alone. Every line is optional. \
    What is commented out shows the default, or an example where there is none. Flags and environment win over this file. \
    `sandyard config check` reads it and tells every mistake at once. Made from the table of settings; do not edit the \
    copy in the repository.";

/// Writes the example file, `deploy/sandyard.toml`.
pub fn example_toml() -> String {
    let mut text = comment(HEAD);
    for section in table::sections() {
        write_section(&mut text, section);
    }
    text
}

fn write_section(text: &mut String, section: &Section) {
    if !section.name.is_empty() {
        let _ = write!(text, "\n{}[{}]\n", comment(section.doc), section.name);
    }
    for setting in section.settings {
        text.push('\n');
        text.push_str(&comment(setting.doc));
        if setting.default.is_empty() && setting.otherwise != "none" {
            text.push_str(&comment(&format!("Without it: {}.", setting.otherwise)));
        }
        let _ = writeln!(text, "# {} = {}", setting.name(), value(setting));
    }
}

/// The default, or the example where there is none, as TOML writes it.
fn value(setting: &Setting) -> String {
    let text = match setting.default {
        "" => setting.example,
        default => default,
    };
    match setting.kind.is_bare(text) {
        true => text.to_owned(),
        false => format!("\"{}\"", text.escape_debug()),
    }
}

/// Breaks a text into comment lines.
fn comment(text: &str) -> String {
    let mut lines = String::new();
    let mut line = String::from("#");
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push_str(&line);
            lines.push('\n');
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    lines + &line + "\n"
}
