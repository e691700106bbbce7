//! Imports of trees and archives that mean well.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sandyard_template::{ImportOptions, Imported, Limits, Owners, Progress, TemplateError};

use crate::archives::{Entry, Tar, reader};
use crate::support::{TestStore, fifo, mode, owners, read, set_xattr, write, xattr};

fn import(test: &TestStore, bytes: &[u8]) -> Result<Imported, TemplateError> {
    test.store
        .import_tar("t", bytes, ImportOptions::new(owners()))
}

fn root_of(imported: &Imported) -> PathBuf {
    imported.template.parts[0].layers[0].clone()
}

fn small() -> Vec<u8> {
    let mut tar = Tar::default();
    tar.dir("./", 0o755)
        .dir("./bin", 0o755)
        .file("./bin/sh", "#!")
        .symlink("./sh", "bin/sh");
    tar.finish()
}

#[test]
fn an_archive_keeps_files_links_modes_and_times() {
    let test = TestStore::new();
    let mut tar = Tar::default();
    tar.dir("bin", 0o555)
        .add(Entry {
            path: b"bin/su",
            data: b"elf",
            mode: 0o4755,
            ..Entry::default()
        })
        .hard_link("bin/su2", "bin/su")
        .symlink("lib", "usr/lib")
        .file("deep/down/file", "made parents")
        .add(Entry {
            path: b"pipe",
            kind: b'6',
            mode: 0o622,
            ..Entry::default()
        });
    let imported = import(&test, &tar.finish()).expect("import");
    let root = root_of(&imported);
    assert_eq!(mode(root.join("bin")), 0o555);
    assert_eq!(mode(root.join("bin/su")), 0o4755);
    assert_eq!(mode(root.join("pipe")), 0o622);
    assert_eq!(mode(root.join("deep/down")), 0o755);
    let (one, two) = (
        fs::metadata(root.join("bin/su")),
        fs::metadata(root.join("bin/su2")),
    );
    assert_eq!(one.expect("stat").ino(), two.expect("stat").ino());
    assert_eq!(
        fs::read_link(root.join("lib")).expect("link"),
        Path::new("usr/lib")
    );
    for path in ["bin", "bin/su", "lib", "pipe"] {
        let metadata = fs::symlink_metadata(root.join(path)).expect("stat");
        assert_eq!(metadata.mtime(), 1_600_000_000, "{path}");
    }
}

#[test]
fn every_compression_is_detected_by_its_first_bytes() {
    let plain = small();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain).expect("gzip");
    let mut xz =
        lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).expect("xz");
    xz.write_all(&plain).expect("xz");
    let zstd =
        ruzstd::encoding::compress_to_vec(&plain[..], ruzstd::encoding::CompressionLevel::Fastest);
    // Two frames with a skippable one between, as parallel compressors write them.
    let (a, b) = plain.split_at(700);
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let mut frames = ruzstd::encoding::compress_to_vec(a, level);
    frames.extend_from_slice(&[0x52, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
    frames.extend(ruzstd::encoding::compress_to_vec(b, level));
    let variants = [
        ("plain", plain.clone()),
        ("gzip", gzip.finish().expect("gzip")),
        ("xz", xz.finish().expect("xz")),
        ("zstd", zstd),
        ("zstd frames", frames),
    ];
    for (name, bytes) in variants {
        let test = TestStore::new();
        let imported = import(&test, &bytes).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        assert_eq!(read(root_of(&imported).join("sh")), "#!", "{name}");
        if name != "plain" {
            let damaged = &bytes[..bytes.len() / 2];
            let test = TestStore::new();
            assert!(import(&test, damaged).is_err(), "half of {name}");
            assert!(test.layer_names().is_empty());
        }
    }
}

#[test]
fn compressed_by_the_usual_programs() {
    for program in ["gzip", "xz", "zstd"] {
        let child = Command::new(program)
            .arg("-c")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        // These tests need no such programs: the formats are covered above. Where they are there, they must agree.
        let Ok(mut child) = child else { continue };
        child
            .stdin
            .take()
            .expect("stdin")
            .write_all(&small())
            .expect("write");
        let output = child.wait_with_output().expect("wait");
        let test = TestStore::new();
        let imported =
            import(&test, &output.stdout).unwrap_or_else(|error| panic!("{program}: {error:?}"));
        assert_eq!(read(root_of(&imported).join("bin/sh")), "#!");
    }
}

#[test]
fn archives_of_gnu_tar_with_long_names_and_holes_are_read() {
    let source = tempfile::tempdir().expect("temp dir");
    let long = "n".repeat(200);
    write(source.path().join(&long).join(&long), "long");
    symlink("t".repeat(180), source.path().join("link")).expect("symlink");
    let sparse = fs::File::create(source.path().join("sparse")).expect("create");
    // Enough pieces for GNU's extra header blocks.
    for piece in 0..40_u64 {
        std::os::unix::fs::FileExt::write_all_at(&sparse, b"data", piece * (1 << 20))
            .expect("write");
    }
    sparse.set_len(50 << 20).expect("set_len");
    for format in [
        &["--format=gnu"][..],
        &["--format=posix", "--sparse-version=1.0"],
        &["--format=posix", "--sparse-version=0.1"],
        &["--format=posix", "--sparse-version=0.0"],
        &["--format=pax"],
    ] {
        let output = Command::new("tar")
            .args(format)
            .args(["--sparse", "--create", "--directory"])
            .arg(source.path())
            .arg(".")
            .output()
            .expect("tar runs");
        assert!(output.status.success());
        let test = TestStore::new();
        let imported =
            import(&test, &output.stdout).unwrap_or_else(|error| panic!("{format:?}: {error:?}"));
        let root = root_of(&imported);
        assert_eq!(read(root.join(&long).join(&long)), "long", "{format:?}");
        assert_eq!(
            fs::read_link(root.join("link")).expect("link"),
            Path::new(&"t".repeat(180))
        );
        let same = fs::read(root.join("sparse")).expect("read")
            == fs::read(source.path().join("sparse")).expect("read");
        assert!(same, "{format:?}");
        let metadata = fs::metadata(root.join("sparse")).expect("stat");
        assert!(
            metadata.blocks() * 512 < 10 << 20,
            "{format:?} kept no holes: {}",
            metadata.blocks()
        );
    }
}

#[test]
fn extended_headers_name_times_owners_and_attributes() {
    let test = TestStore::new();
    let long = format!("dir/{}", "x".repeat(150));
    let mut tar = Tar::default();
    tar.pax(&[
        ("path", long.as_bytes()),
        ("mtime", b"1500000000.5"),
        ("uid", b"7"),
        ("SCHILY.xattr.user.kept", b"yes\0binary"),
        ("SCHILY.xattr.user.overlay.opaque", b"y"),
        ("SCHILY.xattr.trusted.overlay.opaque", b"y"),
        ("SCHILY.xattr.security.selinux", b"label"),
    ]);
    tar.file("short", "data");
    let imported = import(&test, &tar.finish()).expect("import");
    let path = root_of(&imported).join(&long);
    let metadata = fs::metadata(&path).expect("stat");
    assert_eq!(
        (metadata.mtime(), metadata.mtime_nsec()),
        (1_500_000_000, 500_000_000)
    );
    if owners() == Owners::Keep {
        assert_eq!(metadata.uid(), 7);
    }
    assert_eq!(
        xattr(&path, "user.kept").as_deref(),
        Some(&b"yes\0binary"[..])
    );
    for name in [
        "user.overlay.opaque",
        "trusted.overlay.opaque",
        "security.selinux",
    ] {
        assert_eq!(xattr(&path, name), None, "{name}");
    }
    assert_eq!(imported.counts.xattrs, 3);
}

#[test]
fn owners_above_the_range_become_the_overflow_id() {
    if owners() != Owners::Keep {
        return eprintln!("not root: owners are not kept, nothing to see");
    }
    let test = TestStore::new();
    let mut tar = Tar::default();
    tar.add(Entry {
        path: b"a",
        ids: (70_000, 65_535),
        ..Entry::default()
    });
    let imported = import(&test, &tar.finish()).expect("import");
    let metadata = fs::metadata(root_of(&imported).join("a")).expect("stat");
    assert_eq!((metadata.uid(), metadata.gid()), (65_534, 65_535));
    assert_eq!(imported.counts.owners, 1);
}

#[test]
fn owners_are_not_touched_when_not_kept() {
    let test = TestStore::new();
    let mut tar = Tar::default();
    tar.add(Entry {
        path: b"a",
        ids: (12, 34),
        ..Entry::default()
    });
    let imported = test
        .store
        .import_tar("t", reader(&tar), ImportOptions::new(Owners::Current))
        .expect("import");
    let metadata = fs::metadata(root_of(&imported).join("a")).expect("stat");
    assert_eq!(metadata.uid(), rustix::process::geteuid().as_raw());
}

#[test]
fn a_bare_root_gets_what_sandboxes_need() {
    let test = TestStore::new();
    let imported = import(&test, &small()).expect("import");
    let root = root_of(&imported);
    for dir in [
        "dev",
        "proc",
        "sys",
        "run",
        "tmp",
        "etc",
        "workspace",
        "home/user",
    ] {
        assert!(root.join(dir).is_dir(), "{dir}");
    }
    assert_eq!(mode(root.join("tmp")), 0o1777);
    let passwd = read(root.join("etc/passwd"));
    assert!(passwd.starts_with("root:x:0:0:"));
    assert!(
        passwd.ends_with("user:x:1000:1000::/home/user:/bin/sh\n"),
        "{passwd}"
    );
    assert!(read(root.join("etc/group")).contains("sudo:x:27:user\n"));
    if owners() == Owners::Keep {
        assert_eq!(
            fs::metadata(root.join("workspace")).expect("stat").uid(),
            1000
        );
    }
}

#[test]
fn accounts_that_are_there_stay() {
    let test = TestStore::new();
    let mut tar = Tar::default();
    tar.file(
        "etc/passwd",
        "root:x:0:0::/root:/bin/sh\nubuntu:x:1000:1000::/home/ubuntu:/bin/bash",
    )
    .file("etc/group", "root:x:0:\nubuntu:x:1000:\nsudo:x:27:ubuntu\n")
    .file("etc/shadow", "root:*:1:::::::\n")
    .file(
        "etc/sudoers",
        "root ALL=(ALL) ALL\n@includedir /etc/sudoers.d\n",
    )
    .file("etc/skel/.bashrc", "# skel\n")
    .file("usr/bin/sudo", "elf")
    .file("bin/bash", "elf");
    let imported = import(&test, &tar.finish()).expect("import");
    let root = root_of(&imported);
    let passwd = read(root.join("etc/passwd"));
    assert!(passwd.contains("ubuntu:x:1000:"));
    assert!(
        passwd.ends_with("user:x:1001:1001::/home/user:/bin/bash\n"),
        "{passwd}"
    );
    assert!(read(root.join("etc/group")).contains("sudo:x:27:ubuntu,user\n"));
    assert!(read(root.join("etc/shadow")).contains("user:*:"));
    assert_eq!(
        read(root.join("etc/sudoers.d/sandyard-user")),
        "user ALL=(ALL:ALL) NOPASSWD: ALL\n"
    );
    assert_eq!(mode(root.join("etc/sudoers.d/sandyard-user")), 0o440);
    assert_eq!(read(root.join("home/user/.bashrc")), "# skel\n");
}

#[test]
fn the_shim_is_sudo_where_there_is_none() {
    let test = TestStore::new();
    write(test.path("shim"), "program");
    let mut tar = Tar::default();
    tar.file("usr/bin/env", "elf");
    let mut options = ImportOptions::new(owners());
    options.shim_program = Some(test.path("shim"));
    let imported = test
        .store
        .import_tar("t", reader(&tar), options)
        .expect("import");
    let sudo = root_of(&imported).join("usr/bin/sudo");
    assert_eq!(read(&sudo), "program");
    assert_eq!(mode(&sudo), 0o4755);
}

#[test]
fn a_tree_is_copied_whole() {
    let test = TestStore::new();
    let tree = test.path("tree");
    write(tree.join("a/file"), "content");
    fs::hard_link(tree.join("a/file"), tree.join("a/other")).expect("link");
    symlink("/nowhere/at all", tree.join("a/dangling")).expect("symlink");
    fifo(&tree.join("a/pipe"));
    let _socket = std::os::unix::net::UnixListener::bind(tree.join("a/socket")).expect("bind");
    set_xattr(&tree.join("a/file"), "user.k", b"v");
    set_xattr(&tree.join("a"), "user.overlay.opaque", b"y");
    let sparse = fs::File::create(tree.join("sparse")).expect("create");
    sparse.set_len(64 << 20).expect("set_len");
    std::os::unix::fs::FileExt::write_all_at(&sparse, b"x", 32 << 20).expect("write");

    let imported = test
        .store
        .import_tree("t", &tree, ImportOptions::new(owners()))
        .expect("import");
    let root = root_of(&imported);
    assert_eq!(read(root.join("a/other")), "content");
    let inode = |path: &str| fs::metadata(root.join(path)).expect("stat").ino();
    assert_eq!(inode("a/file"), inode("a/other"));
    assert_eq!(
        fs::read_link(root.join("a/dangling")).expect("link"),
        Path::new("/nowhere/at all")
    );
    assert_eq!(
        xattr(&root.join("a/file"), "user.k").as_deref(),
        Some(&b"v"[..])
    );
    assert_eq!(xattr(&root.join("a"), "user.overlay.opaque"), None);
    assert!(!root.join("a/socket").exists());
    assert!(root.join("a/pipe").exists());
    assert_eq!(imported.counts.sockets, 1);
    let metadata = fs::metadata(root.join("sparse")).expect("stat");
    assert_eq!(metadata.len(), 64 << 20);
    assert!(metadata.blocks() * 512 < 1 << 20);
}

#[test]
fn a_tree_that_holds_the_store_is_copied_without_it() {
    let test = TestStore::new();
    write(test.path("file"), "x");
    let imported = test
        .store
        .import_tree("t", test.temp.path(), ImportOptions::new(owners()))
        .expect("import");
    let root = root_of(&imported);
    assert!(root.join("file").exists());
    assert!(!root.join("data/layers").exists());
}

#[test]
fn limits_hold_and_leave_nothing() {
    let cases = [
        (
            Limits {
                entries: 2,
                ..Limits::default()
            },
            "entries",
        ),
        (
            Limits {
                bytes: 1,
                ..Limits::default()
            },
            "bytes of data",
        ),
    ];
    for (limits, expected) in cases {
        let test = TestStore::new();
        let mut options = ImportOptions::new(owners());
        options.limits = limits;
        let error = test
            .store
            .import_tar("t", &small()[..], options)
            .expect_err("too much");
        assert!(
            matches!(error, TemplateError::LimitExceeded { what, .. } if what == expected),
            "{error}"
        );
        assert!(test.layer_names().is_empty());
        assert_eq!(test.store.get("t").expect("get"), None);
    }
}

#[test]
fn progress_is_reported_and_can_stop_the_import() {
    let test = TestStore::new();
    let mut last = Progress::default();
    let mut on_progress = |progress: Progress| {
        last = progress;
        std::ops::ControlFlow::Continue(())
    };
    let mut options = ImportOptions::new(owners());
    options.on_progress = Some(&mut on_progress);
    test.store
        .import_tar("t", &small()[..], options)
        .expect("import");
    assert_eq!(
        last,
        Progress {
            entries: 4,
            bytes: 2
        }
    );

    let mut stop = |_| std::ops::ControlFlow::Break(());
    let mut options = ImportOptions::new(owners());
    options.on_progress = Some(&mut stop);
    let error = test
        .store
        .import_tar("u", &small()[..], options)
        .expect_err("stopped");
    assert!(matches!(error, TemplateError::Cancelled));
    assert_eq!(test.layer_names().len(), 1);
}
