//! Languages for code search.

use std::path::Path;

use ast_grep_core::Language;
use ast_grep_language::SupportLang;

use crate::reply::{Problem, Result};

/// Languages whose grammars are built in. The library panics for others.
const LANGUAGES: &[(SupportLang, &str)] = &[
    (SupportLang::Bash, "bash"),
    (SupportLang::C, "c"),
    (SupportLang::Cpp, "cpp"),
    (SupportLang::Css, "css"),
    (SupportLang::Go, "go"),
    (SupportLang::Html, "html"),
    (SupportLang::Java, "java"),
    (SupportLang::JavaScript, "javascript"),
    (SupportLang::Json, "json"),
    (SupportLang::Python, "python"),
    (SupportLang::Rust, "rust"),
    (SupportLang::Tsx, "tsx"),
    (SupportLang::TypeScript, "typescript"),
    (SupportLang::Yaml, "yaml"),
];

/// Finds a language by name.
pub(super) fn by_name(name: &str) -> Result<SupportLang> {
    let found: Option<SupportLang> = name.parse().ok();
    found.filter(|language| is_known(*language)).ok_or_else(|| {
        let names: Vec<_> = LANGUAGES.iter().map(|(_, name)| *name).collect();
        Problem::new(format!(
            "unknown language {name:?}: use one of {}, or Grep",
            names.join(", ")
        ))
    })
}

/// The language of a file, by its name.
pub(super) fn of(path: &Path) -> Option<SupportLang> {
    SupportLang::from_path(path).filter(|language| is_known(*language))
}

/// The name of a language.
pub(super) fn name(language: SupportLang) -> &'static str {
    let found = LANGUAGES.iter().find(|(known, _)| *known == language);
    found.map_or("unknown", |(_, name)| name)
}

fn is_known(language: SupportLang) -> bool {
    LANGUAGES.iter().any(|(known, _)| *known == language)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ast_grep_core::tree_sitter::LanguageExt;

    #[test]
    fn every_language_has_a_grammar() {
        for (language, name) in LANGUAGES {
            assert_eq!(by_name(name).unwrap(), *language);
            assert!(!language.ast_grep("a").root().kind().is_empty(), "{name}");
        }
        assert!(by_name("cobol").is_err());
        assert!(
            by_name("swift").is_err(),
            "known to the library, but not built in"
        );
        assert!(of(Path::new("a.swift")).is_none());
        assert_eq!(of(Path::new("a.rs")), Some(SupportLang::Rust));
    }
}
