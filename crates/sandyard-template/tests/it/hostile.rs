//! Archives that mean harm.

use std::fs;
use std::path::Path;

use sandyard_template::{ImportOptions, Imported, TemplateError};

use crate::archives::{Entry, Tar};
use crate::support::{TestStore, owners, read, write};

/// A store beside a directory that must stay as it is.
struct Trap {
    test: TestStore,
}

impl Trap {
    fn new() -> Self {
        let test = TestStore::new();
        write(test.path("outside/victim"), "untouched");
        Self { test }
    }

    fn import(&self, tar: &Tar) -> Result<Imported, TemplateError> {
        self.import_bytes(&tar.finish())
    }

    fn import_bytes(&self, bytes: &[u8]) -> Result<Imported, TemplateError> {
        self.test
            .store
            .import_tar("t", bytes, ImportOptions::new(owners()))
    }

    fn host_folder(&self) -> String {
        self.test.path("outside").display().to_string()
    }

    /// Fails unless everything outside is as before and, after a failure, nothing is left.
    fn check(&self, result: &Result<Imported, TemplateError>) {
        assert_eq!(
            crate::support::names(&self.test.path("outside")),
            ["victim"]
        );
        assert_eq!(read(self.test.path("outside/victim")), "untouched");
        assert_eq!(
            crate::support::names(self.test.temp.path()),
            ["data", "outside"]
        );
        let layers = self.test.layer_names().len();
        assert_eq!(layers, usize::from(result.is_ok()), "{result:?}");
    }
}

fn root(imported: &Imported) -> &Path {
    &imported.template.parts[0].layers[0]
}

#[test]
fn names_with_dots_and_leading_slashes_stay_inside() {
    let trap = Trap::new();
    let mut tar = Tar::default();
    tar.file("../../../../outside/victim", "evil")
        .file("/abs/file", "in")
        .file("a/../../b", "in");
    let absolute = format!("{}/victim", trap.host_folder());
    tar.pax(&[("path", absolute.as_bytes())]).file("x", "evil");
    let result = trap.import(&tar);
    trap.check(&result);
    let imported = result.expect("contained");
    assert_eq!(read(root(&imported).join("outside/victim")), "evil");
    assert_eq!(read(root(&imported).join("abs/file")), "in");
    assert_eq!(read(root(&imported).join("b")), "in");
}

#[test]
fn writing_through_links_stays_inside() {
    let trap = Trap::new();
    let host_folder = trap.host_folder();
    let mut tar = Tar::default();
    tar.pax(&[("linkpath", host_folder.as_bytes())])
        .symlink("abs", "x");
    tar.symlink("up", "../../../../../../outside");
    tar.symlink("chain", "abs");
    tar.pax(&[("linkpath", format!("{host_folder}/victim").as_bytes())])
        .symlink("file", "x");
    // The last component is never followed.
    tar.file("file", "replaced");
    tar.dir("abs/", 0o700);
    tar.file("abs/victim", "evil");
    let result = trap.import(&tar);
    trap.check(&result);
    assert_eq!(
        read(root(&result.expect("contained")).join("file")),
        "replaced"
    );

    // A directory on the way that leads nowhere inside is an error, not an escape.
    for link in ["up", "abs", "chain"] {
        let trap = Trap::new();
        let mut tar = Tar::default();
        tar.pax(&[("linkpath", trap.host_folder().as_bytes())])
            .symlink("abs", "x");
        tar.symlink("up", "../../../../../../outside")
            .symlink("chain", "abs");
        tar.file(&format!("{link}/victim"), "evil");
        let result = trap.import(&tar);
        trap.check(&result);
        assert!(result.is_err(), "{link}");
    }
}

#[test]
fn links_lead_where_they_will_lead_inside() {
    let trap = Trap::new();
    let mut tar = Tar::default();
    tar.dir("usr/bin", 0o755)
        .symlink("bin", "/usr/bin")
        .symlink("sbin", "../../../usr/bin")
        .file("bin/a", "a")
        .file("sbin/b", "b");
    let result = trap.import(&tar);
    trap.check(&result);
    let imported = result.expect("import");
    assert_eq!(read(root(&imported).join("usr/bin/a")), "a");
    assert_eq!(read(root(&imported).join("usr/bin/b")), "b");
}

#[test]
fn hard_links_reach_only_what_is_inside() {
    for target in [
        "../../../../outside/victim",
        "/etc/passwd",
        "missing",
        "dir",
        "",
        ".",
        "evil/victim",
    ] {
        let trap = Trap::new();
        let mut tar = Tar::default();
        tar.dir("dir", 0o755);
        tar.pax(&[("linkpath", trap.host_folder().as_bytes())])
            .symlink("evil", "x");
        tar.pax(&[("linkpath", target.as_bytes())])
            .hard_link("stolen", "x");
        let result = trap.import(&tar);
        trap.check(&result);
        assert!(
            matches!(result, Err(TemplateError::BadArchive { .. })),
            "{target}: {result:?}"
        );
    }
}

#[test]
fn a_hard_link_to_a_link_does_not_follow_it() {
    let trap = Trap::new();
    let mut tar = Tar::default();
    tar.pax(&[(
        "linkpath",
        format!("{}/victim", trap.host_folder()).as_bytes(),
    )])
    .symlink("link", "x");
    tar.hard_link("copy", "link")
        .file("copy", "evil")
        .hard_link("copy", "copy");
    let result = trap.import(&tar);
    trap.check(&result);
    assert_eq!(read(root(&result.expect("import")).join("copy")), "evil");
}

#[test]
fn directories_swapped_for_links_do_not_redirect_later_work() {
    let trap = Trap::new();
    let host_folder = trap.host_folder();
    let mut tar = Tar::default();
    // The directory's mode is set last, when its name is a link already.
    tar.dir("d", 0o777);
    tar.pax(&[("linkpath", host_folder.as_bytes())])
        .symlink("d", "x");
    let before = crate::support::mode(&host_folder);
    let result = trap.import(&tar);
    trap.check(&result);
    assert_eq!(crate::support::mode(&host_folder), before);
}

#[test]
fn devices_and_whiteouts_are_left_out() {
    let trap = Trap::new();
    let mut tar = Tar::default();
    for (path, kind) in [(&b"disk"[..], b'4'), (b"null", b'3'), (b"strange", b'Z')] {
        tar.add(Entry {
            path,
            kind,
            ..Entry::default()
        });
    }
    let result = trap.import(&tar);
    trap.check(&result);
    let imported = result.expect("import");
    assert_eq!((imported.counts.devices, imported.counts.unknown), (2, 1));
    for name in ["disk", "null", "strange"] {
        assert!(!root(&imported).join(name).exists());
    }
}

#[test]
fn account_files_that_are_links_or_pipes_do_no_harm() {
    let trap = Trap::new();
    let host_folder = format!("{}/victim", trap.host_folder());
    let mut tar = Tar::default();
    tar.dir("etc", 0o755);
    tar.pax(&[("linkpath", host_folder.as_bytes())])
        .symlink("etc/passwd", "x");
    tar.add(Entry {
        path: b"etc/group",
        kind: b'6',
        ..Entry::default()
    });
    tar.pax(&[("linkpath", trap.host_folder().as_bytes())])
        .symlink("dev", "x");
    tar.pax(&[("linkpath", trap.host_folder().as_bytes())])
        .symlink("workspace", "x");
    let result = trap.import(&tar);
    trap.check(&result);
    let imported = result.expect("import");
    assert!(read(root(&imported).join("etc/passwd")).contains("user:x:1000"));
    assert!(
        fs::symlink_metadata(root(&imported).join("dev"))
            .expect("stat")
            .is_dir()
    );
}

#[test]
fn depth_beyond_every_path_is_removed_again() {
    let trap = Trap::new();
    let mut tar = Tar::default();
    let deep = "d/".repeat(1900);
    // Through links to the deepest, deeper and deeper; then something wrong, so that all must go.
    for (round, name) in ["one", "two", "three"].iter().enumerate() {
        let start = if round == 0 {
            String::new()
        } else {
            format!("{}/", ["one", "two", "three"][round - 1])
        };
        let path = format!("{start}{deep}{name}-dir");
        tar.pax(&[("path", path.as_bytes())]).dir("x", 0o755);
        tar.pax(&[("linkpath", path.as_bytes())]).symlink(name, "x");
    }
    tar.hard_link("broken", "missing");
    let result = trap.import(&tar);
    trap.check(&result);
    assert!(result.is_err());
}

#[test]
fn claims_of_size_are_not_believed() {
    let mut huge = tar::Header::new_gnu();
    huge.set_path("huge").expect("path");
    huge.set_mode(0o644);
    huge.set_uid(0);
    huge.set_gid(0);
    huge.set_mtime(0);
    for (kind, size) in [
        (b'0', 8 << 30),
        (b'0', 1 << 60),
        (b'x', 1 << 40),
        (b'L', 1 << 40),
        (b'K', 1 << 40),
        (b'g', 1 << 40),
    ] {
        huge.set_entry_type(tar::EntryType::new(kind));
        huge.set_size(size);
        huge.set_cksum();
        let trap = Trap::new();
        let result = trap.import_bytes(huge.as_bytes());
        trap.check(&result);
        assert!(result.is_err(), "{kind} {size}");
    }
}

#[test]
fn sparse_maps_that_lie_are_refused() {
    let maps: [&[u8]; 5] = [
        b"0,18446744073709551615",
        b"100,10,0,10",
        b"0,600",
        b"0,1,2",
        b"9223372036854775807,9223372036854775807",
    ];
    for map in maps {
        let trap = Trap::new();
        let mut tar = Tar::default();
        tar.pax(&[("GNU.sparse.size", b"1000"), ("GNU.sparse.map", map)])
            .file("f", "0123456789");
        let result = trap.import(&tar);
        trap.check(&result);
        assert!(
            matches!(result, Err(TemplateError::BadArchive { .. })),
            "{result:?}"
        );
    }
    let trap = Trap::new();
    let mut tar = Tar::default();
    tar.pax(&[
        ("GNU.sparse.size", b"9000000000000000000"),
        ("GNU.sparse.map", b"0,1"),
    ])
    .file("f", "0");
    let result = trap.import(&tar);
    trap.check(&result);
    assert!(
        matches!(result, Err(TemplateError::LimitExceeded { .. })),
        "{result:?}"
    );
}

#[test]
fn bombs_stop_at_the_limit() {
    // A gigabyte of zeros in a megabyte.
    let mut tar = tar::Header::new_gnu();
    tar.set_path("zeros").expect("path");
    tar.set_mode(0o644);
    tar.set_uid(0);
    tar.set_gid(0);
    tar.set_mtime(0);
    tar.set_size(1 << 30);
    tar.set_cksum();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut gzip, tar.as_bytes()).expect("gzip");
    std::io::Write::write_all(&mut gzip, &vec![0; 8 << 20]).expect("gzip");
    let bytes = gzip.finish().expect("gzip");
    let trap = Trap::new();
    let mut options = ImportOptions::new(owners());
    options.limits.bytes = 1 << 20;
    let result = trap.test.store.import_tar("t", &bytes[..], options);
    trap.check(&result);
    assert!(matches!(result, Err(TemplateError::LimitExceeded { .. })));
}

#[test]
fn what_is_no_archive_is_refused() {
    let cut = {
        let mut tar = Tar::default();
        tar.file("a", &"x".repeat(2000));
        let bytes = tar.unfinished();
        bytes[..1000].to_vec()
    };
    let cases: [&[u8]; 8] = [
        b"",
        b"hello",
        &[0xff; 4096],
        b"BZh91AY&SY",
        &[0x1f, 0x8b, 8, 0],
        &[0x28, 0xb5, 0x2f, 0xfd, 0xff, 0xff, 0xff, 0xff, 0xff],
        &[0xfd, b'7', b'z', b'X', b'Z', 0, 0, 0, 0],
        &cut,
    ];
    for bytes in cases {
        let trap = Trap::new();
        let result = trap.import_bytes(bytes);
        trap.check(&result);
        assert!(
            matches!(result, Err(TemplateError::BadArchive { .. })),
            "{bytes:?}: {result:?}"
        );
    }
}
