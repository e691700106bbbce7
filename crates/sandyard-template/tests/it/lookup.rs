//! What a template shows at a path.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use sandyard_template::{Entry, Kind, Part, Template, TemplateLookup};

use crate::support::{TestStore, set_xattr, write};

fn template(root: &[PathBuf], usr: &Path) -> Template {
    let part = |target: &str, layers: &[PathBuf]| Part {
        target: target.into(),
        key: target.trim_matches('/').to_owned() + "-key",
        layers: layers.to_vec(),
    };
    Template {
        name: "t".into(),
        kind: Kind::Imported,
        created_unix_ms: 0,
        defaults: Default::default(),
        size_bytes: None,
        parts: vec![part("/", root), part("/usr", &[usr.to_owned()])],
    }
}

/// Part, real path and content (or kind) of what is shown.
fn show(lookup: &mut TemplateLookup<'_>, path: &str) -> Option<(usize, String, String)> {
    let entry = lookup.find(Path::new(path)).expect("readable")?;
    let what = match entry.entry {
        Entry::Nothing => "nothing".to_owned(),
        Entry::Folder => "folder".to_owned(),
        Entry::Other => "other".to_owned(),
        Entry::File(file) => match file.read(100).expect("read") {
            Some(bytes) => String::from_utf8(bytes).expect("text"),
            None => "too long".to_owned(),
        },
    };
    Some((entry.part, entry.path.display().to_string(), what))
}

fn expected(part: usize, path: &str, what: &str) -> Option<(usize, String, String)> {
    Some((part, path.to_owned(), what.to_owned()))
}

#[test]
fn layers_and_parts_are_put_together_and_links_followed_inside() {
    let test = TestStore::new();
    let (top, bottom, usr) = (test.path("top"), test.path("bottom"), test.path("usr"));
    write(bottom.join("etc/hidden"), "below");
    write(bottom.join("etc/both"), "below");
    write(bottom.join("etc/opaque/below"), "below");
    write(bottom.join("etc/merged/below"), "below");
    write(bottom.join("usr/unseen"), "under the part");
    write(usr.join("share/file"), "of usr");
    write(top.join("etc/both"), "above");
    mknodat(
        CWD,
        top.join("etc/hidden"),
        FileType::CharacterDevice,
        Mode::empty(),
        0,
    )
    .expect("whiteout");
    write(top.join("etc/opaque/above"), "above");
    set_xattr(&top.join("etc/opaque"), "user.overlay.opaque", b"y");
    write(top.join("etc/merged/above"), "above");
    write(top.join("etc/long"), "x".repeat(101));
    for (link, target) in [
        ("relative", "merged/../both"),
        ("absolute", "/etc/merged"),
        ("elsewhere", "../../../usr/share"),
        ("dangling", "/etc/no/such"),
        ("around", "around"),
    ] {
        symlink(target, top.join("etc").join(link)).expect("link");
    }
    let template = template(&[top, bottom], &usr);
    let mut lookup = TemplateLookup::new(&template);
    for (path, expected) in [
        ("/etc/both", expected(0, "/etc/both", "above")),
        ("/etc/hidden", expected(0, "/etc/hidden", "nothing")),
        (
            "/etc/opaque/below",
            expected(0, "/etc/opaque/below", "nothing"),
        ),
        (
            "/etc/merged/below",
            expected(0, "/etc/merged/below", "below"),
        ),
        ("/etc/merged", expected(0, "/etc/merged", "folder")),
        ("/etc/long", expected(0, "/etc/long", "too long")),
        ("/etc/relative", expected(0, "/etc/both", "above")),
        (
            "/etc/absolute/above",
            expected(0, "/etc/merged/above", "above"),
        ),
        (
            "/etc/elsewhere/file",
            expected(1, "/usr/share/file", "of usr"),
        ),
        (
            "/etc/dangling/file",
            expected(0, "/etc/no/such/file", "nothing"),
        ),
        ("/usr/unseen", expected(1, "/usr/unseen", "nothing")),
        ("/usr", expected(1, "/usr", "folder")),
        ("/etc/around", None),
        ("/etc/both/below", None),
        ("/../../etc/both", expected(0, "/etc/both", "above")),
    ] {
        assert_eq!(show(&mut lookup, path), expected, "{path}");
    }
}

#[test]
fn parent_folders_are_those_of_the_topmost_layer() {
    let test = TestStore::new();
    let (top, bottom, usr) = (test.path("top"), test.path("bottom"), test.path("usr"));
    write(bottom.join("etc/ssl/file"), "x");
    fs::create_dir_all(top.join("etc")).expect("mkdir");
    fs::create_dir(&usr).expect("mkdir");
    let mode = |path: &Path, mode: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("chmod");
    };
    mode(&bottom.join("etc"), 0o700);
    mode(&top.join("etc"), 0o751);
    mode(&bottom.join("etc/ssl"), 0o1775);
    let template = template(&[top, bottom], &usr);
    let mut lookup = TemplateLookup::new(&template);
    let entry = lookup
        .find(Path::new("/etc/ssl/certs/x"))
        .expect("find")
        .expect("a found");
    let folders: Vec<_> = entry
        .folders
        .iter()
        .map(|folder| (folder.path.to_str().expect("UTF-8"), folder.mode))
        .collect();
    assert_eq!(folders, [("/etc", 0o751), ("/etc/ssl", 0o1775)]);
}

#[test]
fn a_file_that_changes_has_another_identity() {
    let test = TestStore::new();
    let (root, usr) = (test.path("root"), test.path("usr"));
    write(root.join("file"), "one");
    fs::create_dir(&usr).expect("mkdir");
    let template = template(std::slice::from_ref(&root), &usr);
    let identity = || {
        let entry = TemplateLookup::new(&template)
            .find(Path::new("/file"))
            .expect("find");
        match entry.expect("a found").entry {
            Entry::File(file) => file.identity(),
            other => panic!("{other:?}"),
        }
    };
    let before = identity();
    assert_eq!(identity(), before);
    write(root.join("other"), "two");
    fs::rename(root.join("other"), root.join("file")).expect("rename");
    assert_ne!(identity(), before);
}
