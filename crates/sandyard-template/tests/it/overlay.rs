//! Snapshots and diffs against real overlay mounts, made as the engine makes them.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use sandyard_template::{ChangeKind, FileType, Owners, Template, diff};

use crate::support::{
    Overlay, TestStore, as_root, fifo, mode, owners, read, set_xattr, write, xattr,
};

fn base(test: &TestStore) -> Template {
    let tree = test.path("tree");
    for name in [
        "keep",
        "change",
        "delete",
        "dir/one",
        "dir/two",
        "gone/a",
        "gone/b",
        "again/old",
        "again/both",
        "chmod",
    ] {
        write(tree.join(name), "template");
    }
    write(tree.join("fake/file"), "template");
    test.import("base", &tree)
}

/// Does everything to the merged view that a sandbox could.
fn change(merged: &Overlay) {
    fs::write(merged.path("change"), "changed now").expect("write");
    fs::write(merged.path("new"), "new").expect("write");
    fs::create_dir_all(merged.path("newdir/sub")).expect("mkdir");
    fs::write(merged.path("newdir/sub/file"), "deep").expect("write");
    fs::remove_file(merged.path("delete")).expect("rm");
    fs::remove_file(merged.path("dir/one")).expect("rm");
    fs::remove_dir_all(merged.path("gone")).expect("rm -r");
    fs::remove_dir_all(merged.path("again")).expect("rm -r");
    fs::create_dir(merged.path("again")).expect("mkdir");
    fs::write(merged.path("again/both"), "anew").expect("write");
    fs::set_permissions(merged.path("chmod"), fs::Permissions::from_mode(0o4755)).expect("chmod");
    symlink("../keep", merged.path("newdir/link")).expect("symlink");
    fs::hard_link(merged.path("new"), merged.path("newdir/hard")).expect("link");
    fifo(&merged.path("newdir/pipe"));
    set_xattr(&merged.path("new"), "user.note", b"kept");
    // Opened for writing and not written: copied up, not changed.
    drop(
        fs::File::options()
            .write(true)
            .open(merged.path("keep"))
            .expect("open"),
    );
}

fn upper_dirs(overlay: &Overlay) -> Vec<(String, std::path::PathBuf)> {
    vec![("root".to_owned(), overlay.upper.clone())]
}

#[test]
fn a_diff_tells_what_a_sandbox_did() {
    as_root("overlay::a_diff_tells_what_a_sandbox_did", || {
        let test = TestStore::new();
        let base = base(&test);
        let merged = Overlay::of(&base.parts[0], &test.path("disk"));
        assert_eq!(diff(&base, &upper_dirs(&merged)).expect("diff").changes, []);
        change(&merged);
        let diff = diff(&base, &upper_dirs(&merged)).expect("diff");
        let found: Vec<_> = diff
            .changes
            .iter()
            .map(|change| {
                (
                    change.path.to_str().expect("utf-8"),
                    change.kind,
                    change.file_type,
                    change.size_bytes,
                )
            })
            .collect();
        use ChangeKind::{Added, Deleted, Modified};
        use FileType::{Directory, File, Other, Symlink};
        assert_eq!(
            found,
            [
                ("/again/both", Modified, File, 4),
                ("/again/old", Deleted, File, 8),
                ("/change", Modified, File, 11),
                ("/chmod", Modified, File, 8),
                ("/delete", Deleted, File, 8),
                ("/dir/one", Deleted, File, 8),
                ("/gone", Deleted, Directory, 0),
                ("/new", Added, File, 3),
                ("/newdir", Added, Directory, 0),
                ("/newdir/hard", Added, File, 3),
                ("/newdir/link", Added, Symlink, 7),
                ("/newdir/pipe", Added, Other, 0),
                ("/newdir/sub", Added, Directory, 0),
                ("/newdir/sub/file", Added, File, 4),
            ]
        );
        assert!(!diff.truncated);
    });
}

#[test]
fn a_sandbox_on_the_snapshot_sees_what_the_first_saw() {
    as_root(
        "overlay::a_sandbox_on_the_snapshot_sees_what_the_first_saw",
        || {
            let test = TestStore::new();
            let base = base(&test);
            let first = Overlay::of(&base.parts[0], &test.path("disk"));
            change(&first);
            let (snapshot, counts) = test
                .store
                .snapshot("snap", &base, &upper_dirs(&first), owners())
                .expect("snapshot");
            assert_eq!(snapshot.parts[0].layers.len(), 2);
            assert_eq!(snapshot.parts[0].layers[1], base.parts[0].layers[0]);
            assert!(counts.done.entries > 10);

            let second = Overlay::of(&snapshot.parts[0], &test.path("disk2"));
            assert_eq!(listing(&first.path("")), listing(&second.path("")));
            assert_eq!(mode(second.path("chmod")), 0o4755);
            assert_eq!(
                xattr(&second.path("new"), "user.note").as_deref(),
                Some(&b"kept"[..])
            );
            let inode = |path: &str| fs::metadata(second.path(path)).expect("stat").ino();
            assert_eq!(inode("new"), inode("newdir/hard"));
            // Nothing of the first sandbox's own bookkeeping travelled.
            let layer = &snapshot.parts[0].layers[0];
            for name in ["user.overlay.origin", "user.overlay.impure"] {
                assert_eq!(xattr(&layer.join("change"), name), None);
                assert_eq!(xattr(layer, name), None);
            }

            // And once more on top, with what the first deleted made again.
            fs::write(second.path("delete"), "back").expect("write");
            fs::remove_dir_all(second.path("newdir")).expect("rm -r");
            let upper = upper_dirs(&second);
            let found = diff(&snapshot, &upper).expect("diff").changes;
            let found: Vec<_> = found
                .iter()
                .map(|change| (change.path.as_path(), change.kind))
                .collect();
            assert_eq!(
                found,
                [
                    (Path::new("/delete"), ChangeKind::Added),
                    (Path::new("/newdir"), ChangeKind::Deleted),
                ]
            );
            let (third, _) = test
                .store
                .snapshot("snap2", &snapshot, &upper, owners())
                .expect("snapshot");
            assert_eq!(third.parts[0].layers.len(), 3);
            let third = Overlay::of(&third.parts[0], &test.path("disk3"));
            assert_eq!(read(third.path("delete")), "back");
            assert!(!third.path("newdir").exists());
            assert!(!third.path("gone").exists());
            assert!(!third.path("again/old").exists());
        },
    );
}

#[test]
fn what_a_sandbox_names_like_overlay_attributes_is_kept_as_its_own() {
    as_root(
        "overlay::what_a_sandbox_names_like_overlay_attributes_is_kept_as_its_own",
        || {
            let test = TestStore::new();
            let base = base(&test);
            let first = Overlay::of(&base.parts[0], &test.path("disk"));
            // Kernels before 6.7 refuse such names inside; later ones store them under a doubled prefix.
            let set = rustix::fs::setxattr(
                first.path("fake"),
                "user.overlay.opaque",
                b"y",
                rustix::fs::XattrFlags::empty(),
            );
            let (snapshot, _) = match set {
                Ok(()) => test
                    .store
                    .snapshot("snap", &base, &upper_dirs(&first), owners())
                    .expect("snapshot"),
                Err(error) => {
                    return eprintln!("this kernel keeps such names from sandboxes: {error}");
                }
            };
            let second = Overlay::of(&snapshot.parts[0], &test.path("disk2"));
            assert_eq!(read(second.path("fake/file")), "template");
            assert_eq!(
                xattr(&second.path("fake"), "user.overlay.opaque").as_deref(),
                Some(&b"y"[..])
            );
        },
    );
}

#[test]
fn imported_whiteouts_delete_nothing() {
    as_root("overlay::imported_whiteouts_delete_nothing", || {
        let test = TestStore::new();
        let tree = test.path("tree");
        write(tree.join("etc/file"), "x");
        write(tree.join("etc/empty"), "");
        set_xattr(&tree.join("etc/empty"), "user.overlay.whiteout", b"y");
        set_xattr(&tree.join("etc"), "user.overlay.opaque", b"x");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            tree.join("etc/node"),
            rustix::fs::FileType::CharacterDevice,
            rustix::fs::Mode::empty(),
            0,
        )
        .expect("mknod");
        let template = test.import("base", &tree);
        let merged = Overlay::of(&template.parts[0], &test.path("disk"));
        assert!(merged.path("etc/empty").exists());
        assert!(!template.parts[0].layers[0].join("etc/node").exists());
    });
}

#[test]
fn owners_and_capabilities_survive_a_snapshot() {
    as_root(
        "overlay::owners_and_capabilities_survive_a_snapshot",
        || {
            let test = TestStore::new();
            let base = base(&test);
            let merged = Overlay::of(&base.parts[0], &test.path("disk"));
            let path = merged.path("tool");
            fs::write(&path, "elf").expect("write");
            // cap_net_raw=ep as version 2 of the attribute.
            let mut capability = [0_u8; 20];
            capability[..4].copy_from_slice(&0x0200_0001_u32.to_le_bytes());
            capability[4..8].copy_from_slice(&(1_u32 << 13).to_le_bytes());
            set_xattr(&path, "security.capability", &capability);
            // Only the one id is mapped where the test runs in a user namespace of its own.
            let given =
                std::os::unix::fs::chown(merged.path("chmod"), Some(1000), Some(1000)).is_ok();
            let (snapshot, _) = test
                .store
                .snapshot("snap", &base, &upper_dirs(&merged), Owners::Keep)
                .expect("snapshot");
            let layer = &snapshot.parts[0].layers[0];
            assert!(
                xattr(&layer.join("tool"), "security.capability")
                    .is_some_and(|value| value[4..8] == capability[4..8])
            );
            let metadata = fs::metadata(layer.join("chmod"));
            assert_eq!(metadata.is_ok_and(|metadata| metadata.uid() == 1000), given);
        },
    );
}

/// Paths, kinds, modes and contents of everything, as a sandbox would see it.
fn listing(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut pending = vec![root.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir).expect("read dir") {
            let path = entry.expect("entry").path();
            let metadata = fs::symlink_metadata(&path).expect("stat");
            let content = if metadata.is_file() {
                read(&path)
            } else if metadata.is_symlink() {
                fs::read_link(&path).expect("link").display().to_string()
            } else {
                String::new()
            };
            let rel = path.strip_prefix(root).expect("below");
            let owner = (metadata.uid(), metadata.gid(), metadata.mtime());
            found.push(format!(
                "{} {:o} {owner:?} {content}",
                rel.display(),
                metadata.mode()
            ));
            if metadata.is_dir() {
                pending.push(path);
            }
        }
    }
    found.sort();
    found
}
