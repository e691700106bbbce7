//! Scripted answers: what a test or a user's file says that commands do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use regex::Regex;
use serde::Deserialize;

/// Maximum size of a file of rules.
const MAX_BYTES: u64 = 16 << 20;

/// Why rules cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RulesError {
    /// The file cannot be read.
    #[error("cannot read the rules of the fake provider in `{path}`")]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The file does not contain valid rules.
    #[error("`{path}` is not a list of rules: {problem}")]
    Parse {
        /// Path of the file.
        path: PathBuf,
        /// What is wrong with its content.
        problem: String,
    },
}

/// What a command does.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rule {
    /// Regular expression for the command line.
    pub command: String,
    /// Text on standard output.
    pub stdout: String,
    /// Text on standard error.
    pub stderr: String,
    /// Exit code of the command.
    pub exit_code: i32,
    /// Contents of files that the command writes, by path.
    pub files: BTreeMap<String, String>,
    /// Whether the command runs until it is killed, as a server does.
    pub keeps_running: bool,
}

/// The rules of a provider, in order of precedence.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    rules: Mutex<Vec<(Regex, Arc<Rule>)>>,
    path: Option<PathBuf>,
}

impl Rules {
    /// Reads a file of rules.
    pub(super) fn load(path: &Path) -> Result<Self, RulesError> {
        let unreadable = |source| RulesError::Read {
            path: path.to_owned(),
            source,
        };
        let invalid = |problem: String| RulesError::Parse {
            path: path.to_owned(),
            problem,
        };
        if std::fs::metadata(path).map_err(unreadable)?.len() > MAX_BYTES {
            return Err(invalid(format!("it has more than {MAX_BYTES} bytes")));
        }
        let text = std::fs::read(path).map_err(unreadable)?;
        let rules: Vec<Rule> =
            serde_json::from_slice(&text).map_err(|error| invalid(error.to_string()))?;
        let compiled = rules.into_iter().enumerate().map(|(at, rule)| {
            let pattern = Regex::new(&rule.command)
                .map_err(|error| invalid(format!("`command` of rule {}: {error}", at + 1)))?;
            Ok((pattern, Arc::new(rule)))
        });
        Ok(Self {
            rules: Mutex::new(compiled.collect::<Result<_, _>>()?),
            path: Some(path.to_owned()),
        })
    }

    /// Adds a rule that precedes all others.
    pub(crate) fn add(&self, rule: Rule) -> Result<(), regex::Error> {
        let pattern = Regex::new(&rule.command)?;
        self.rules.lock().insert(0, (pattern, Arc::new(rule)));
        Ok(())
    }

    /// Returns the first rule that matches a command line.
    pub(super) fn find(&self, line: &str) -> Option<Arc<Rule>> {
        let rules = self.rules.lock();
        let mut matching = rules.iter().filter(|(pattern, _)| pattern.is_match(line));
        matching.next().map(|(_, rule)| rule.clone())
    }

    /// The message for a command without a rule.
    pub(super) fn unknown(&self, line: &str) -> String {
        let line: String = line.chars().take(1000).collect();
        let file = match &self.path {
            Some(path) => path.display().to_string(),
            None => "a file that the setting `fake.rules` names".to_owned(),
        };
        format!("sandyard fake: no rule for `{line}`: add one to {file}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<Rules, RulesError> {
        // The length of the text makes the name unique within this process.
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
    fn errors_name_the_problem() {
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
