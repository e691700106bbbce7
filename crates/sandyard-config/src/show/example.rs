//! Generates the example file: every setting, commented out, with its default.

use std::fmt::Write as _;

use crate::setting::{Section, Setting};
use crate::table::Table;

/// Most columns of a comment line, including `# `.
const WIDTH: usize = 100;

const HEAD: &str = "Settings of Sandyard. Copy this file to /etc/sandyard/sandyard.toml or <data directory>/sandyard.toml. The server reads the \
    first one that exists of `--config FILE`, $SANDYARD_CONFIG, the one in the data directory and the one in /etc. Every line is optional. \
    Lines that are commented out show the default, or an example if there is none. Flags and environment variables take precedence over this file. \
    `sandyard config check` reports all errors at once. Generated from the table of settings; do not edit the \
    copy in the repository.";

/// The example file, `deploy/sandyard.toml`.
pub fn example_toml(table: &Table) -> String {
    let mut text = comment(HEAD);
    for section in table.sections() {
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
        if setting.default.is_empty() && setting.when_unset != "none" {
            text.push_str(&comment(&format!("If not set: {}.", setting.when_unset)));
        }
        let _ = writeln!(text, "# {} = {}", setting.name(), value(setting));
    }
}

/// The default, or the example, in TOML.
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

/// Wraps a text into comment lines.
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
