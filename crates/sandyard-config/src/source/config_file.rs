//! The configuration file: TOML, each key one of the table.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::read::small_text;
use crate::nearest::nearest;
use crate::problem::Problem;
use crate::setting::Setting;
use crate::source::Origin;
use crate::table::Table;

/// What a configuration file says, and what is wrong with it.
#[derive(Default)]
pub(crate) struct ConfigFile {
    /// Text and origin by key; only keys of the table.
    pub(crate) entries: BTreeMap<&'static str, (String, Origin)>,
    pub(crate) errors: Vec<Problem>,
    pub(crate) warnings: Vec<Problem>,
}

/// Reads the file; `None` if there is none.
pub(crate) fn read(table: &Table, path: &Path) -> Option<ConfigFile> {
    match small_text(path) {
        Ok((text, metadata)) => {
            let mut file = parse(table, &text, path);
            let open = open_secret(table, &file, path, &metadata);
            file.warnings.extend(open);
            Some(file)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(ConfigFile {
            errors: vec![Problem::new(format!(
                "failed to read `{}`: {error}",
                path.display()
            ))],
            ..ConfigFile::default()
        }),
    }
}

/// Warns when a file with a secret in it can be read by everybody.
fn open_secret(
    table: &Table,
    file: &ConfigFile,
    path: &Path,
    metadata: &Metadata,
) -> Option<Problem> {
    let is_secret = |(key, (text, _)): (&&'static str, &(String, Origin))| {
        let setting = table.setting(key);
        setting.is_some_and(|setting| setting.mask(text) != *text)
    };
    let is_open = metadata.permissions().mode() & 0o004 != 0;
    (is_open && file.entries.iter().any(is_secret)).then(|| {
        Problem::new(format!(
            "`{}` holds a secret, and everybody may read it",
            path.display()
        ))
        .hint(format!("chmod 640 {}", path.display()))
    })
}

pub(crate) fn parse(settings: &Table, text: &str, path: &Path) -> ConfigFile {
    let (document, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader {
        settings,
        text,
        path: path.to_owned(),
        file: ConfigFile::default(),
    };
    for error in &errors {
        // Only its message: the excerpt it could show may be the line with a secret.
        let at = error.span().map_or(0, |span| span.start);
        let problem = Problem::new(format!("this is not TOML: {}", error.message()));
        reader.complain(at, problem);
    }
    // What a parser guesses of a broken file is not worth talking about, nor is more than one problem a line.
    match errors.is_empty() {
        true => reader.table("", document.get_ref()),
        false => {
            reader.file.errors.sort_by_key(Problem::line);
            reader.file.errors.dedup_by_key(|problem| problem.line());
        }
    }
    reader.file
}

struct Reader<'a> {
    settings: &'a Table,
    text: &'a str,
    path: PathBuf,
    file: ConfigFile,
}

impl Reader<'_> {
    fn origin(&self, offset: usize) -> Origin {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        Origin::File {
            path: self.path.clone(),
            line: before.iter().filter(|byte| **byte == b'\n').count() + 1,
        }
    }

    fn complain(&mut self, offset: usize, problem: Problem) {
        let origin = self.origin(offset);
        self.file.errors.push(problem.at(origin));
    }

    /// Walks one table. `parent` is its name with a dot behind it, or nothing for the whole document.
    fn table(&mut self, parent: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            let key = format!("{parent}{}", name.get_ref());
            let at = name.span().start;
            let is_section = self.settings.sections().any(|section| section.name == key);
            match (self.settings.setting(&key), value.get_ref()) {
                (Some(setting), _) => self.entry(setting, at, value),
                (None, DeValue::Table(inner)) if is_section => {
                    self.table(&format!("{key}."), inner);
                }
                (None, _) if is_section => {
                    let problem = Problem::new(format!("`{key}` is a table: write [{key}]"));
                    self.complain(at, problem);
                }
                (None, value) => self.unknown(&key, at, value.is_table()),
            }
        }
    }

    fn unknown(&mut self, key: &str, at: usize, is_table: bool) {
        let mut problem = Problem::new(match is_table {
            true => format!("there is no table `{key}`"),
            false => format!("there is no setting `{key}`"),
        });
        let names: Box<dyn Iterator<Item = &str>> = match is_table {
            true => Box::new(self.settings.sections().map(|section| section.name)),
            false => Box::new(self.settings.all().map(|setting| setting.key)),
        };
        if let Some(name) = nearest(key, names.filter(|name| !name.is_empty())) {
            problem = problem.hint(format!("did you mean `{name}`?"));
        }
        self.complain(at, problem);
    }

    fn entry(&mut self, setting: &'static Setting, at: usize, value: &Spanned<DeValue<'_>>) {
        let text = match value.get_ref() {
            DeValue::Array(items) if setting.kind.is_list() => {
                let parts: Option<Vec<String>> =
                    items.iter().map(|item| scalar(item.get_ref())).collect();
                parts.map(|parts| parts.join(","))
            }
            value => scalar(value),
        };
        match text {
            Some(text) => {
                let origin = self.origin(at);
                self.file.entries.insert(setting.key, (text, origin));
            }
            None => {
                let problem = match setting.kind.is_list() {
                    true => Problem::new("takes texts or numbers"),
                    false => Problem::new("takes one text, number or boolean"),
                };
                self.complain(at, problem.about(setting.key));
            }
        }
    }
}

/// The text of a plain value: what an environment variable would hold.
fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => {
            let whole = i64::from_str_radix(number.as_str(), number.radix());
            // One that is too large for us is refused later, by the range of its setting.
            Some(whole.map_or_else(|_| number.to_string(), |whole| whole.to_string()))
        }
        DeValue::Float(number) => Some(number.to_string()),
        DeValue::Boolean(value) => Some(value.to_string()),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}
