//! Files made from the table are up to date. `UPDATE_DOCS=1` rewrites them.

use std::path::Path;

use sandyard_config::{example_toml, reference_markdown};

use crate::{Host, table};

fn is_current(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(name);
    if std::env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1") {
        std::fs::write(&path, text).expect("write");
    }
    let current = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        current == text,
        "`{name}` is out of date; run: UPDATE_DOCS=1 cargo test -p sandyard-config"
    );
}

#[test]
fn the_reference_is_up_to_date() {
    is_current("docs/configuration.md", &reference_markdown(&table()));
}

#[test]
fn the_example_file_is_up_to_date() {
    is_current("deploy/sandyard.toml", &example_toml(&table()));
}

#[test]
fn the_example_file_changes_nothing_as_it_is() {
    let plain = Host::new();
    let host = Host::new().toml(&example_toml(&table()));
    let (with, without) = (host.loaded().settings, plain.loaded().settings);
    assert_eq!(with.server, without.server);
    assert_eq!(with.e2b, without.e2b);
    assert_eq!(with.lifecycle, without.lifecycle);
    assert_eq!(with.limits, without.limits);
    assert_eq!(with.gateway, without.gateway);
}

#[test]
fn the_example_file_is_valid_with_every_line_in_force() {
    let is_setting = |line: &str| {
        line.strip_prefix("# ").is_some_and(|rest| {
            let name = rest.split(" = ").next().unwrap_or_default();
            rest.contains(" = ") && table().all().any(|setting| setting.name() == name)
        })
    };
    let mut uncommented = 0;
    let mut text = String::new();
    for line in example_toml(&table()).lines() {
        if is_setting(line) {
            uncommented += 1;
            text.push_str(&line[2..]);
        } else {
            text.push_str(line);
        }
        text.push('\n');
    }
    assert_eq!(uncommented, table().all().count());
    // The one thing that cannot be: files at the places of the example.
    let errors = Host::new().toml(&text).errors();
    assert!(
        errors.len() == 5 && errors.iter().all(|error| error.contains("failed to open")),
        "{errors:?}"
    );
}

#[test]
fn the_reference_names_every_key_variable_and_flag() {
    let reference = reference_markdown(&table());
    for setting in table().all() {
        let flag = setting.flag.map(str::to_owned);
        let names = setting
            .variables()
            .into_iter()
            .chain(flag)
            .chain([setting.key.to_owned()]);
        for name in names {
            assert!(reference.contains(&format!("`{name}`")), "{name}");
        }
    }
}
