//! What holds for every setting, those of the providers included.

use std::collections::BTreeSet;

use crate::table;

#[test]
fn keys_belong_to_their_section() {
    for section in table().sections() {
        for setting in section.settings {
            let (table, name) = setting.key.rsplit_once('.').unwrap_or(("", setting.key));
            assert_eq!(
                (table, name),
                (section.name, setting.name()),
                "{}",
                setting.key
            );
        }
    }
}

#[test]
fn keys_variables_and_flags_are_each_used_once() {
    let mut seen = BTreeSet::new();
    for setting in table().all() {
        assert!(seen.insert(setting.key.to_owned()), "{}", setting.key);
        for variable in setting.variables() {
            assert!(seen.insert(variable.clone()), "{variable}");
        }
        if let Some(flag) = setting.flag {
            assert!(flag.starts_with("--"), "{flag}");
            assert!(seen.insert(flag.to_owned()), "{flag}");
        }
    }
}

#[test]
fn defaults_and_examples_are_valid() {
    for setting in table().all() {
        for text in [setting.default, setting.example] {
            if !text.is_empty() {
                assert!(
                    setting.kind.check(text, &table().provider_names()).is_ok(),
                    "{}: {text}",
                    setting.key
                );
            }
        }
        let has_value = !setting.default.is_empty() || !setting.example.is_empty();
        assert!(
            has_value,
            "{} has nothing to show in the example",
            setting.key
        );
    }
}

#[test]
fn every_setting_is_explained_in_sentences() {
    for setting in table().all() {
        assert!(setting.doc.ends_with('.'), "{}", setting.key);
        assert!(
            !setting.doc.contains('|'),
            "{} would break the reference",
            setting.key
        );
    }
}
