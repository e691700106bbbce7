//! Paths and what surrounds them in a URL: whatever a client writes becomes one clean absolute path or is refused.
#![no_main]

#[allow(dead_code)]
#[path = "../../crates/sandyard-agent/src/path.rs"]
mod path;

/// As much of the agent's as a path needs.
mod settings {
    pub(crate) struct Settings {
        pub(crate) default_workdir: Option<String>,
    }
}

/// As much of the agent's as a path needs.
mod user {
    pub(crate) struct Account {
        pub(crate) home: std::path::PathBuf,
    }
}

/// As much of the agent's as a path needs.
mod workdir {
    pub(crate) fn common(_: &crate::settings::Settings, _: &crate::user::Account) -> Option<std::path::PathBuf> {
        None
    }
}

use std::path::Component;

use libfuzzer_sys::fuzz_target;
use sandyard_wire::{query, range};

fn check_path(text: &str, settings: &settings::Settings) {
    let account = user::Account {
        home: "/home/user".into(),
    };
    let Ok(resolved) = path::resolve(text, &account, settings) else {
        return;
    };
    let mut components = resolved.components();
    assert_eq!(components.next(), Some(Component::RootDir), "{resolved:?}");
    assert!(
        components.all(|part| matches!(part, Component::Normal(_))),
        "{resolved:?}"
    );
    assert!(path::to_c(&resolved).is_ok(), "{resolved:?}");
    // Resolving what is resolved changes nothing; with the home before it, it may have become too long to be accepted.
    match path::resolve(resolved.to_str().expect("was text"), &account, settings) {
        Ok(again) => assert_eq!(again, resolved),
        Err(_) => assert!(resolved.as_os_str().len() >= 4096),
    }
    let _ = path::name(&resolved);
}

fn check_range(header: &str, size: u64) {
    if let range::Part::Range { first, last } = range::parse(Some(header), size) {
        assert!(first <= last && last < size, "{header} of {size}");
    }
}

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    let workdir = |dir: Option<&str>| settings::Settings {
        default_workdir: dir.map(str::to_owned),
    };
    check_path(&text, &workdir(None));
    check_path(&text, &workdir(Some("/work")));
    check_range(&text, input.len() as u64 % 7);
    check_range(&text, u64::MAX);
    if let Ok(uri) = format!("/files?path={text}").parse::<http::Uri>() {
        let query = query::Query::of(&uri);
        if let Some(decoded) = query.get("path") {
            check_path(decoded, &workdir(None));
        }
    }
});
