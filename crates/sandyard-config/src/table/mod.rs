//! Every setting there is, a file per section.
//!
//! To add one: a row here, a field in [`settings`](crate::settings), and `UPDATE_DOCS=1 cargo test -p sandyard-config`.

mod auth;
mod database;
mod daytona;
mod docker;
mod e2b;
mod e2b_cloud;
mod fake;
mod gateway;
mod lifecycle;
mod limits;
mod log;
mod logs;
mod node;
mod redis;
mod sandbox;
mod secrets;
mod server;
mod top;

use crate::setting::{Section, Setting};

static SECTIONS: [Section; 18] = [
    top::SECTION,
    server::SECTION,
    e2b::SECTION,
    auth::SECTION,
    database::SECTION,
    redis::SECTION,
    sandbox::SECTION,
    lifecycle::SECTION,
    logs::SECTION,
    limits::SECTION,
    gateway::SECTION,
    docker::SECTION,
    e2b_cloud::SECTION,
    daytona::SECTION,
    fake::SECTION,
    secrets::SECTION,
    node::SECTION,
    log::SECTION,
];

/// Variables with the prefix `SANDYARD_` that are not settings, and their meaning.
pub const OTHER_VARIABLES: [(&str, &str); 4] = [
    (
        "SANDYARD_CONFIG",
        "Path of the configuration file, like `--config`. The file must exist.",
    ),
    ("SANDYARD_URL", "For the command line: URL of the server."),
    (
        "SANDYARD_API_KEY",
        "For the command line: API key for the server.",
    ),
    (
        "SANDYARD_CA_CERT",
        "For the command line: path of a PEM file with certificate authorities to trust in addition to the host's.",
    ),
];

/// The sections, in the order people should read them.
pub fn sections() -> &'static [Section] {
    &SECTIONS
}

/// All settings of all sections.
pub fn all() -> impl Iterator<Item = &'static Setting> {
    SECTIONS.iter().flat_map(|section| section.settings)
}

/// Finds a setting by its key.
pub fn setting(key: &str) -> Option<&'static Setting> {
    all().find(|setting| setting.key == key)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn keys_belong_to_their_section() {
        for section in sections() {
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
        for setting in all() {
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
        for setting in all() {
            for text in [setting.default, setting.example] {
                if !text.is_empty() {
                    assert!(setting.kind.parse(text).is_ok(), "{}: {text}", setting.key);
                }
            }
            let shown = !setting.default.is_empty() || !setting.example.is_empty();
            assert!(shown, "{} has nothing to show in the example", setting.key);
        }
    }

    #[test]
    fn every_setting_is_explained_in_sentences() {
        for setting in all() {
            assert!(setting.doc.ends_with('.'), "{}", setting.key);
            assert!(
                !setting.doc.contains('|'),
                "{} would break the reference",
                setting.key
            );
        }
    }
}
