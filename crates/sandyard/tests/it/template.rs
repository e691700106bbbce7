//! `sandyard template`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::yard::Yard;

/// A root with one program in it: ours, which needs nothing else.
fn small_root(yard: &Yard) -> std::path::PathBuf {
    let root = yard.path().join("root");
    fs::create_dir_all(root.join("bin")).expect("make");
    fs::copy(env!("CARGO_BIN_EXE_sandyard"), root.join("bin/sandyard")).expect("copy");
    fs::set_permissions(root.join("bin/sandyard"), fs::Permissions::from_mode(0o755))
        .expect("mode");
    root
}

#[test]
fn a_folder_becomes_a_template_that_runs() {
    let yard = Yard::new();
    let root = small_root(&yard);
    assert_eq!(
        yard.out(&[
            "template",
            "--local",
            "import",
            "small",
            root.to_str().expect("UTF-8")
        ]),
        "small"
    );
    let version = format!("sandyard {}", env!("CARGO_PKG_VERSION"));
    assert_eq!(
        yard.out(&[
            "run",
            "--template",
            "small",
            "--",
            "/bin/sandyard",
            "--version"
        ]),
        version
    );
    assert!(yard.out(&["template", "--local", "ls"]).contains("small"));
    assert_eq!(yard.out(&["template", "--local", "rm", "small"]), "small");
    assert!(!yard.out(&["template", "--local", "ls"]).contains("small"));
    assert_eq!(
        yard.sandyard(&["template", "--local", "rm", "host"])
            .status
            .code(),
        Some(125)
    );
}

#[test]
fn an_archive_becomes_a_template_from_a_file_and_from_standard_input() {
    let yard = Yard::new();
    let root = small_root(&yard);
    let archive = yard.path().join("small.tar.gz");
    let packed = Command::new("tar")
        .arg("-czf")
        .arg(&archive)
        .arg("-C")
        .arg(&root)
        .arg(".")
        .status()
        .expect("tar");
    assert!(packed.success());
    yard.out(&[
        "template",
        "--local",
        "import",
        "file",
        archive.to_str().expect("UTF-8"),
    ]);
    let mut command = yard.command(&["template", "--local", "import", "piped", "-"]);
    let output = command
        .stdin(fs::File::open(&archive).expect("open"))
        .output()
        .expect("run");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for name in ["file", "piped"] {
        assert!(
            yard.out(&["run", "-T", name, "--", "/bin/sandyard", "--version"])
                .starts_with("sandyard ")
        );
    }
}

#[test]
fn what_is_no_archive_or_no_name_is_refused_and_leaves_nothing() {
    let yard = Yard::new();
    let junk = yard.path().join("junk");
    fs::write(&junk, vec![7; 100_000]).expect("write");
    for name in ["junk", "../up", "a/b", ""] {
        let output = yard.sandyard(&[
            "template",
            "--local",
            "import",
            name,
            junk.to_str().expect("UTF-8"),
        ]);
        assert_eq!(output.status.code(), Some(125), "{name}");
    }
    assert!(!yard.out(&["template", "--local", "ls"]).contains("junk"));
}
