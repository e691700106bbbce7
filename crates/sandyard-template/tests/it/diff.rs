//! Diffs: bounds, several parts, several layers. What overlayfs itself writes is in `overlay.rs`.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use sandyard_template::{
    ChangeKind, DiffOptions, Kind, Part, Template, TemplateError, diff, diff_with,
};

use crate::support::{TestStore, set_xattr, write};

fn template(layers: &[PathBuf]) -> Template {
    Template {
        name: "t".into(),
        kind: Kind::Imported,
        created_unix_ms: 0,
        defaults: Default::default(),
        size_bytes: None,
        parts: vec![
            Part {
                target: "/".into(),
                key: "root".into(),
                layers: layers.to_vec(),
            },
            Part {
                target: "/usr/local".into(),
                key: "usr-local".into(),
                layers: layers.to_vec(),
            },
        ],
    }
}

fn whiteout(path: &Path) {
    fs::create_dir_all(path.parent().expect("parent")).expect("mkdir");
    mknodat(CWD, path, FileType::CharacterDevice, Mode::empty(), 0).expect("whiteout");
}

fn changes(template: &Template, key: &str, upper: &Path) -> Vec<(String, ChangeKind)> {
    let diff = diff(template, &[(key.to_owned(), upper.to_owned())]).expect("diff");
    let pair = |change: sandyard_template::Change| (change.path.display().to_string(), change.kind);
    diff.changes.into_iter().map(pair).collect()
}

#[test]
fn layers_are_merged_as_overlayfs_merges_them() {
    let test = TestStore::new();
    let (top, bottom, upper) = (test.path("top"), test.path("bottom"), test.path("upper"));
    write(bottom.join("hidden"), "x");
    write(bottom.join("opaque/below"), "x");
    write(bottom.join("merged/below"), "x");
    whiteout(&top.join("hidden"));
    write(top.join("opaque/above"), "x");
    set_xattr(&top.join("opaque"), "user.overlay.opaque", b"y");
    write(top.join("merged/above"), "x");
    for name in [
        "hidden",
        "opaque/below",
        "opaque/above",
        "merged/below",
        "merged/above",
    ] {
        write(upper.join(name), "new text");
    }
    use ChangeKind::{Added, Modified};
    assert_eq!(
        changes(&template(&[top, bottom]), "root", &upper),
        [
            ("/hidden".to_owned(), Added),
            ("/merged/above".to_owned(), Modified),
            ("/merged/below".to_owned(), Modified),
            ("/opaque/above".to_owned(), Modified),
            ("/opaque/below".to_owned(), Added),
        ]
    );
}

#[test]
fn opaque_directories_delete_what_is_not_in_them() {
    let test = TestStore::new();
    let (layer, upper) = (test.path("layer"), test.path("upper"));
    write(layer.join("d/old"), "x");
    write(layer.join("d/sub/old"), "x");
    write(layer.join("d/sub/both"), "x");
    write(upper.join("d/new"), "y");
    write(upper.join("d/sub/both"), "yy");
    set_xattr(&upper.join("d"), "user.overlay.opaque", b"y");
    use ChangeKind::{Added, Deleted, Modified};
    assert_eq!(
        changes(&template(&[layer]), "root", &upper),
        [
            ("/d/new".to_owned(), Added),
            ("/d/old".to_owned(), Deleted),
            ("/d/sub/both".to_owned(), Modified),
            ("/d/sub/old".to_owned(), Deleted),
        ]
    );
}

#[test]
fn a_whiteout_of_nothing_is_no_change() {
    let test = TestStore::new();
    write(test.path("layer/x"), "x");
    whiteout(&test.path("upper/never"));
    assert_eq!(
        changes(
            &template(&[test.path("layer")]),
            "root",
            &test.path("upper")
        ),
        []
    );
}

#[test]
fn paths_are_those_inside() {
    let test = TestStore::new();
    write(test.path("layer/x"), "x");
    write(test.path("upper/bin/tool"), "x");
    let changes = changes(
        &template(&[test.path("layer")]),
        "usr-local",
        &test.path("upper"),
    );
    let paths: Vec<_> = changes.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["/usr/local/bin", "/usr/local/bin/tool"]);
}

#[test]
fn a_changed_kind_is_a_change() {
    let test = TestStore::new();
    write(test.path("layer/was-dir/x"), "x");
    write(test.path("layer/was-file"), "x");
    write(test.path("upper/was-dir"), "x");
    write(test.path("upper/was-file/x"), "x");
    use ChangeKind::{Added, Modified};
    assert_eq!(
        changes(
            &template(&[test.path("layer")]),
            "root",
            &test.path("upper")
        ),
        [
            ("/was-dir".to_owned(), Modified),
            ("/was-file".to_owned(), Modified),
            ("/was-file/x".to_owned(), Added),
        ]
    );
}

#[test]
fn a_diff_is_bounded() {
    let test = TestStore::new();
    write(test.path("layer/x"), "x");
    for index in 0..50 {
        write(test.path(&format!("upper/file{index}")), "x");
    }
    let template = template(&[test.path("layer")]);
    let upper_dirs = [("root".to_owned(), test.path("upper"))];
    for options in [
        DiffOptions {
            max_changes: 10,
            ..DiffOptions::default()
        },
        DiffOptions {
            max_entries: 10,
            ..DiffOptions::default()
        },
    ] {
        let diff = diff_with(&template, &upper_dirs, &options).expect("diff");
        assert_eq!(diff.changes.len(), 10);
        assert!(diff.truncated);
    }
}

#[test]
fn an_unknown_part_is_refused() {
    let test = TestStore::new();
    write(test.path("layer/x"), "x");
    let result = diff(
        &template(&[test.path("layer")]),
        &[("nope".to_owned(), test.path("layer"))],
    );
    assert!(matches!(result, Err(TemplateError::UnknownPart { .. })));
}

#[test]
fn names_that_are_no_utf8_become_json() {
    use std::os::unix::ffi::OsStrExt;
    let test = TestStore::new();
    write(test.path("layer/x"), "x");
    let name = std::ffi::OsStr::from_bytes(b"bad\xff");
    write(test.path("upper").join(name), "x");
    let diff = diff(
        &template(&[test.path("layer")]),
        &[("root".to_owned(), test.path("upper"))],
    )
    .expect("diff");
    assert_eq!(
        diff.changes[0].path.as_os_str(),
        std::ffi::OsStr::from_bytes(b"/bad\xff")
    );
    let text = serde_json::to_string(&diff).expect("json");
    assert!(text.contains("/bad\u{fffd}"), "{text}");
}
