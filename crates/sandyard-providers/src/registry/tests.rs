//! The registry is sound, and the documentation shows it.

use std::collections::BTreeSet;
use std::path::Path;

use super::Registry;

const BEGIN: &str = "<!-- providers: made from the registry";
const END: &str = "<!-- providers: end -->";

#[test]
fn names_are_unique_and_found() {
    let names = Registry::BUILTIN.names();
    let unique: BTreeSet<_> = names.iter().collect();
    assert_eq!(unique.len(), names.len());
    for name in names {
        let found = Registry::BUILTIN.get(name);
        assert_eq!(found.map(|provider| provider.name()), Some(name));
    }
    assert!(Registry::BUILTIN.get("unknown").is_none());
}

#[test]
fn the_documentation_shows_the_registry() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/providers.md");
    let text = std::fs::read_to_string(&path).expect("docs/providers.md");
    let begin = text.find(BEGIN).expect("the begin of the table");
    let begin = begin + text[begin..].find('\n').expect("a line") + 1;
    let end = text.find(END).expect("the end of the table");
    let current = format!("\n{}\n", Registry::BUILTIN.markdown());
    if std::env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1") {
        let updated = [&text[..begin], &current, &text[end..]].concat();
        std::fs::write(&path, updated).expect("written");
        return;
    }
    assert!(
        text[begin..end] == current,
        "docs/providers.md is out of date; run: UPDATE_DOCS=1 cargo test -p sandyard-providers"
    );
}
