//! Snapshots: what is refused, and that a failure leaves nothing.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use sandyard_template::{Kind, MAX_LAYERS, Template, TemplateError};

use crate::support::{TestStore, owners, read, set_xattr, write, xattr};

fn base(test: &TestStore) -> Template {
    write(test.path("tree/file"), "template");
    test.import("base", &test.path("tree"))
}

fn upper(test: &TestStore, name: &str) -> Vec<(String, PathBuf)> {
    let path = test.path(name);
    fs::create_dir_all(&path).expect("mkdir");
    vec![("root".to_owned(), path)]
}

#[test]
fn only_parts_that_changed_get_a_layer() {
    let test = TestStore::new();
    let mut base = base(&test);
    base.parts.push(sandyard_template::Part {
        target: "/usr".into(),
        key: "usr".into(),
        layers: vec!["/usr".into()],
    });
    let mut upper_dirs = upper(&test, "root-upper");
    write(test.path("root-upper/new"), "x");
    fs::create_dir_all(test.path("usr-upper")).expect("mkdir");
    upper_dirs.push(("usr".to_owned(), test.path("usr-upper")));
    let (snapshot, _) = test
        .store
        .snapshot("snap", &base, &upper_dirs, owners())
        .expect("snapshot");
    assert_eq!(snapshot.parts[0].layers.len(), 2);
    assert_eq!(snapshot.parts[1].layers, [Path::new("/usr")]);
    assert_eq!(
        snapshot.kind,
        Kind::Snapshot {
            base: "base".into()
        }
    );
    assert_eq!(test.store.get("snap").expect("get"), Some(snapshot));
}

#[test]
fn whiteouts_of_both_kinds_and_opaque_directories_are_kept() {
    let test = TestStore::new();
    let base = base(&test);
    let upper_dirs = upper(&test, "upper");
    let root = &upper_dirs[0].1;
    mknodat(
        CWD,
        root.join("gone"),
        FileType::CharacterDevice,
        Mode::empty(),
        0,
    )
    .expect("whiteout");
    write(root.join("dir/x"), "");
    set_xattr(&root.join("dir/x"), "user.overlay.whiteout", b"y");
    set_xattr(&root.join("dir"), "user.overlay.opaque", b"x");
    set_xattr(root, "user.overlay.opaque", b"y");
    set_xattr(root, "user.overlay.impure", b"y");
    let (snapshot, _) = test
        .store
        .snapshot("snap", &base, &upper_dirs, owners())
        .expect("snapshot");
    let layer = &snapshot.parts[0].layers[0];
    let metadata = fs::symlink_metadata(layer.join("gone")).expect("stat");
    assert_eq!(
        (metadata.mode() & 0o170_000, metadata.rdev()),
        (0o020_000, 0)
    );
    assert!(xattr(&layer.join("dir/x"), "user.overlay.whiteout").is_some());
    assert_eq!(
        xattr(&layer.join("dir"), "user.overlay.opaque").as_deref(),
        Some(&b"x"[..])
    );
    assert_eq!(
        xattr(layer, "user.overlay.opaque").as_deref(),
        Some(&b"y"[..])
    );
    assert_eq!(xattr(layer, "user.overlay.impure"), None);
}

#[test]
fn what_cannot_be_a_snapshot_is_refused_before_any_work() {
    let test = TestStore::new();
    let base = base(&test);
    let layers = test.layer_names();
    let unknown = [("nope".to_owned(), test.path("tree"))];
    let refused = test.store.snapshot("snap", &base, &unknown, owners());
    assert!(matches!(refused, Err(TemplateError::UnknownPart { .. })));
    let refused = test.store.snapshot("base", &base, &[], owners());
    assert!(matches!(refused, Err(TemplateError::Exists { .. })));
    let refused = test.store.snapshot("../x", &base, &[], owners());
    assert!(matches!(refused, Err(TemplateError::BadName { .. })));
    assert_eq!(test.layer_names(), layers);
}

#[test]
fn too_many_layers_are_refused() {
    let test = TestStore::new();
    let mut base = base(&test);
    let layer = base.parts[0].layers[0].clone();
    base.parts[0].layers = vec![layer; MAX_LAYERS];
    write(test.path("upper/new"), "x");
    let refused = test
        .store
        .snapshot("snap", &base, &upper(&test, "upper"), owners());
    assert!(matches!(
        refused,
        Err(TemplateError::TooManyLayers { layers: 101, .. })
    ));
    assert_eq!(test.layer_names().len(), 1);
}

#[test]
fn a_failure_in_the_middle_leaves_nothing() {
    let test = TestStore::new();
    let mut base = base(&test);
    base.parts.push(sandyard_template::Part {
        target: "/usr".into(),
        key: "usr".into(),
        layers: vec!["/usr".into()],
    });
    let mut upper_dirs = upper(&test, "upper");
    write(test.path("upper/new"), "x");
    upper_dirs.push(("usr".to_owned(), test.path("missing")));
    assert!(
        test.store
            .snapshot("snap", &base, &upper_dirs, owners())
            .is_err()
    );
    assert_eq!(test.layer_names().len(), 1);
    assert_eq!(test.store.get("snap").expect("get"), None);
}

#[test]
fn a_base_swept_meanwhile_is_noticed() {
    let test = TestStore::new();
    let base = base(&test);
    write(test.path("upper/new"), "x");
    test.store.remove("base").expect("remove");
    test.sweep_all();
    let refused = test
        .store
        .snapshot("snap", &base, &upper(&test, "upper"), owners());
    assert!(
        matches!(refused, Err(TemplateError::LayerGone { .. })),
        "{refused:?}"
    );
    assert!(test.layer_names().is_empty());
}

#[test]
fn a_snapshot_outlives_its_base() {
    let test = TestStore::new();
    let base = base(&test);
    write(test.path("upper/new"), "x");
    let (snapshot, _) = test
        .store
        .snapshot("snap", &base, &upper(&test, "upper"), owners())
        .expect("snapshot");
    test.store.remove("base").expect("remove");
    assert!(test.sweep_all().is_empty());
    assert_eq!(read(snapshot.parts[0].layers[1].join("file")), "template");
    test.store.remove("snap").expect("remove");
    assert_eq!(test.sweep_all().len(), 2);
}

#[test]
fn links_in_an_upper_directory_lead_nowhere() {
    let test = TestStore::new();
    let base = base(&test);
    write(test.path("secret/key"), "secret");
    let upper_dirs = upper(&test, "upper");
    std::os::unix::fs::symlink(test.path("secret"), upper_dirs[0].1.join("link")).expect("symlink");
    let (snapshot, counts) = test
        .store
        .snapshot("snap", &base, &upper_dirs, owners())
        .expect("snapshot");
    assert!(
        fs::symlink_metadata(snapshot.parts[0].layers[0].join("link"))
            .expect("stat")
            .is_symlink()
    );
    assert_eq!(counts.done.entries, 1);
}

#[test]
fn uppers_are_reached_through_descriptors() {
    use std::os::fd::AsRawFd;
    let test = TestStore::new();
    let base = base(&test);
    write(test.path("disk/root/upper/new"), "x");
    let disk = fs::File::open(test.path("disk")).expect("open");
    let path = PathBuf::from(format!("/proc/self/fd/{}/root/upper", disk.as_raw_fd()));
    let upper_dirs = [("root".to_owned(), path)];
    let (snapshot, _) = test
        .store
        .snapshot("snap", &base, &upper_dirs, owners())
        .expect("snapshot");
    assert_eq!(read(snapshot.parts[0].layers[0].join("new")), "x");
    assert_eq!(
        sandyard_template::diff(&base, &upper_dirs)
            .expect("diff")
            .changes
            .len(),
        1
    );
}

#[test]
fn a_tree_too_deep_for_any_path_is_refused_and_leaves_nothing() {
    let test = TestStore::new();
    let base = base(&test);
    let upper_dirs = upper(&test, "upper");
    let name = "d".repeat(250);
    let mut dir = fs::File::open(&upper_dirs[0].1).expect("open");
    for _ in 0..20 {
        use std::os::fd::AsRawFd;
        let path = format!("/proc/self/fd/{}/{name}", dir.as_raw_fd());
        fs::create_dir(&path).expect("mkdir");
        dir = fs::File::open(&path).expect("open");
    }
    let refused = test.store.snapshot("snap", &base, &upper_dirs, owners());
    assert!(
        matches!(refused, Err(TemplateError::LimitExceeded { .. })),
        "{refused:?}"
    );
    assert_eq!(test.layer_names().len(), 1);
    let shell = std::process::Command::new("rm")
        .arg("-rf")
        .arg(&upper_dirs[0].1)
        .status()
        .expect("rm");
    assert!(shell.success());
}
