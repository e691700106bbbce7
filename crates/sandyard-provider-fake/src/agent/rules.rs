//! What a user says that commands do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use regex::Regex;
use serde::Deserialize;

/// Most bytes of a file of rules.
const MAX_BYTES: u64 = 16 << 20;

/// Why there are no rules.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RulesError {
    /// The file cannot be read.
    #[error("cannot read the rules of the fake provider in `{path}`")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not what it should be.
    #[error("`{path}` is no list of rules: {problem}")]
    Parse {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

/// What a command does.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Rule {
    /// A regular expression for the command line.
    command: String,
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) exit_code: i32,
    /// Files it writes.
    pub(super) files: BTreeMap<String, String>,
    /// Whether it goes on until it is killed, as a server does.
    pub(super) keeps_running: bool,
}

/// What commands do, the first that matches counting.
#[derive(Debug, Default)]
pub(super) struct Rules {
    rules: Vec<(Regex, Rule)>,
    path: Option<PathBuf>,
}

impl Rules {
    /// Reads a file of rules.
    pub(super) fn load(path: &Path) -> Result<Self, RulesError> {
        let unread = |source| RulesError::Read {
            path: path.to_owned(),
            source,
        };
        let wrong = |problem: String| RulesError::Parse {
            path: path.to_owned(),
            problem,
        };
        if std::fs::metadata(path).map_err(unread)?.len() > MAX_BYTES {
            return Err(wrong(format!("it has more than {MAX_BYTES} bytes")));
        }
        let text = std::fs::read(path).map_err(unread)?;
        let rules: Vec<Rule> =
            serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
        let compiled = rules.into_iter().enumerate().map(|(at, rule)| {
            let pattern = Regex::new(&rule.command);
            let pattern =
                pattern.map_err(|error| wrong(format!("`command` of rule {}: {error}", at + 1)));
            Ok((pattern?, rule))
        });
        Ok(Self {
            rules: compiled.collect::<Result<_, _>>()?,
            path: Some(path.to_owned()),
        })
    }

    /// What a command line does; none when nobody said.
    pub(super) fn find(&self, line: &str) -> Option<&Rule> {
        let found = self
            .rules
            .iter()
            .find(|(pattern, _)| pattern.is_match(line));
        found.map(|(_, rule)| rule)
    }

    /// What to say of a command that nobody knows.
    pub(super) fn unknown(&self, line: &str) -> String {
        let line: String = line.chars().take(1000).collect();
        let place = match &self.path {
            Some(path) => path.display().to_string(),
            None => "a file that the setting `fake.rules` names".to_owned(),
        };
        format!("sandyard fake: no rule for `{line}`: add one to {place}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<Rules, RulesError> {
        // The name alone tells tests of one process apart.
        let name = format!("sandyard-rules-{}-{}", std::process::id(), text.len());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).unwrap();
        let loaded = Rules::load(&path);
        std::fs::remove_file(&path).unwrap();
        loaded
    }

    #[test]
    fn the_first_rule_that_matches_counts() {
        let rules =
            load(r#"[{"command": "^npm test$", "exit_code": 3}, {"command": "npm"}]"#).unwrap();
        assert_eq!(rules.find("npm test").unwrap().exit_code, 3);
        assert_eq!(rules.find("npm testing").unwrap().exit_code, 0);
        assert!(rules.find("cargo").is_none());
        assert!(
            rules
                .unknown("cargo")
                .starts_with("sandyard fake: no rule for `cargo`: add one to /")
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, word) in [
            ("{}", "list"),
            (r#"[{"command": "("}]"#, "rule 1"),
            (r#"[{"comand": "x"}]"#, "comand"),
        ] {
            let error = load(text).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
        assert!(Rules::load(Path::new("/nothing/here")).is_err());
    }
}
