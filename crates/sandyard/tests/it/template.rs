//! `sandyard template`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::test_env::TestEnv;

/// A root file system with one static program: ours.
fn small_root(env: &TestEnv) -> std::path::PathBuf {
    let root = env.path().join("root");
    fs::create_dir_all(root.join("bin")).expect("make");
    fs::copy(env!("CARGO_BIN_EXE_sandyard"), root.join("bin/sandyard")).expect("copy");
    fs::set_permissions(root.join("bin/sandyard"), fs::Permissions::from_mode(0o755))
        .expect("mode");
    root
}

#[test]
fn a_directory_is_imported_as_a_template() {
    let env = TestEnv::new();
    let root = small_root(&env);
    assert_eq!(
        env.out(&[
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
        env.out(&[
            "run",
            "--template",
            "small",
            "--",
            "/bin/sandyard",
            "--version"
        ]),
        version
    );
    assert!(env.out(&["template", "--local", "ls"]).contains("small"));
    assert_eq!(env.out(&["template", "--local", "rm", "small"]), "small");
    assert!(!env.out(&["template", "--local", "ls"]).contains("small"));
    assert_eq!(
        env.sandyard(&["template", "--local", "rm", "host"])
            .status
            .code(),
        Some(125)
    );
}

#[test]
fn an_archive_is_imported_from_a_file_and_from_standard_input() {
    let env = TestEnv::new();
    let root = small_root(&env);
    let archive = env.path().join("small.tar.gz");
    let packed = Command::new("tar")
        .arg("-czf")
        .arg(&archive)
        .arg("-C")
        .arg(&root)
        .arg(".")
        .status()
        .expect("tar");
    assert!(packed.success());
    env.out(&[
        "template",
        "--local",
        "import",
        "file",
        archive.to_str().expect("UTF-8"),
    ]);
    let mut command = env.command(&["template", "--local", "import", "piped", "-"]);
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
            env.out(&["run", "-T", name, "--", "/bin/sandyard", "--version"])
                .starts_with("sandyard ")
        );
    }
}

#[test]
fn an_invalid_archive_or_name_is_refused_and_leaves_nothing() {
    let env = TestEnv::new();
    let junk = env.path().join("junk");
    fs::write(&junk, vec![7; 100_000]).expect("write");
    for name in ["junk", "../up", "a/b", ""] {
        let output = env.sandyard(&[
            "template",
            "--local",
            "import",
            name,
            junk.to_str().expect("UTF-8"),
        ]);
        assert_eq!(output.status.code(), Some(125), "{name}");
    }
    assert!(!env.out(&["template", "--local", "ls"]).contains("junk"));
}
