//! `Glob` and `LS`.

use std::fs::File;
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::files::test_env::TestEnv;

/// Creates a file that was changed `seconds` seconds ago.
fn old_file(env: &TestEnv, name: &str, seconds: u64) {
    env.file(name, "x");
    let time = SystemTime::now() - Duration::from_secs(seconds);
    File::options()
        .write(true)
        .open(env.path(name))
        .unwrap()
        .set_modified(time)
        .unwrap();
}

#[tokio::test]
async fn files_are_found_newest_first() {
    let env = TestEnv::new();
    old_file(&env, "old.rs", 300);
    old_file(&env, "src/new.rs", 100);
    old_file(&env, "src/deep/middle.rs", 200);
    old_file(&env, "src/other.txt", 50);
    let glob = async |pattern: &str| env.text("Glob", json!({"pattern": pattern})).await;
    assert_eq!(
        glob("**/*.rs").await,
        "src/new.rs\nsrc/deep/middle.rs\nold.rs"
    );
    assert_eq!(glob("*.rs").await, "old.rs");
    assert_eq!(glob("src/*.{rs,txt}").await, "src/other.txt\nsrc/new.rs");
    assert_eq!(glob("./src/n?w.rs").await, "src/new.rs");
    assert!(glob("*.py").await.contains("no file matches"));
    let inner = env
        .text("Glob", json!({"pattern": "**/*.rs", "path": "src"}))
        .await;
    assert_eq!(inner, "src/new.rs\nsrc/deep/middle.rs");
    let absolute = env.path("src").canonicalize().unwrap().join("**/*.rs");
    assert_eq!(
        glob(&absolute.display().to_string()).await,
        "src/new.rs\nsrc/deep/middle.rs"
    );
    let absolute = env.path("src").canonicalize().unwrap().join("new.rs");
    assert_eq!(glob(&absolute.display().to_string()).await, "src/new.rs");
}

#[tokio::test]
async fn much_is_cut_and_nothing_outside_is_found() {
    let env = TestEnv::new();
    for number in 0..250 {
        old_file(&env, &format!("f{number}"), number * 10);
    }
    let reply = env.call("Glob", json!({"pattern": "f*"})).await.unwrap();
    let structured = reply.structured().unwrap();
    assert_eq!(
        (&structured["total"], &structured["truncated"]),
        (&json!(250), &json!(true))
    );
    assert_eq!(structured["files"].as_array().unwrap().len(), 200);
    assert_eq!(
        (&structured["files"][0], &structured["files"][199]),
        (&json!("f0"), &json!("f199"))
    );
    assert!(
        reply
            .all_text()
            .contains("[truncated: the 200 newest of 250 files")
    );
    env.file(".hidden/file", "x");
    env.file(".gitignore", "made\n");
    env.file("made", "x");
    symlink("/etc", env.path("etc")).unwrap();
    for pattern in ["**/made", "**/file", "etc/*", "**/passwd"] {
        let none = env.text("Glob", json!({"pattern": pattern})).await;
        assert!(none.contains("no file matches"), "{none}");
    }
    assert_eq!(
        env.text("Glob", json!({"pattern": ".hidden/*"})).await,
        ".hidden/file"
    );
    for (pattern, words) in [
        ("/etc/*", "outside of the workspace"),
        ("../*", "path instead"),
        ("[", "invalid file pattern"),
        ("/*", "outside of the workspace"),
    ] {
        let problem = env.problem("Glob", json!({"pattern": pattern})).await;
        assert!(problem.contains(words), "{pattern}: {problem}");
    }
    assert!(
        env.problem("Glob", json!({"pattern": "*", "path": "f1"}))
            .await
            .contains("not a folder")
    );
}

#[tokio::test]
async fn folders_come_first_and_links_are_marked() {
    let env = TestEnv::new();
    env.file("b.txt", "12345");
    env.file("z/inner", "");
    env.file(".hidden", "");
    env.file("odd\nname", "");
    symlink("/etc/passwd", env.path("link")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, env.path("pipe"), rustix::fs::Mode::RWXU).unwrap();
    let reply = env.call("LS", json!({})).await.unwrap();
    let text = reply.all_text();
    let root = env.path("").canonicalize().unwrap();
    let expected = "z/\n.hidden (0)\nb.txt (5)\nlink -> /etc/passwd\nodd\u{fffd}name (0)\npipe [pipe or socket]\n";
    assert_eq!(text, format!("{}:\n{expected}", root.display()));
    let structured = reply.structured().unwrap();
    assert_eq!(
        structured["entries"][0],
        json!({"name": "z", "kind": "folder", "size": null, "target": null})
    );
    assert_eq!(structured["entries"][3]["target"], "/etc/passwd");
    std::fs::create_dir(env.path("empty")).unwrap();
    assert!(
        env.text("LS", json!({"path": "empty"}))
            .await
            .contains("empty]")
    );
    assert!(
        env.problem("LS", json!({"path": "b.txt"}))
            .await
            .contains("Read")
    );
    assert!(
        env.problem("LS", json!({"path": "/etc"}))
            .await
            .contains("outside")
    );
    assert!(
        env.problem("LS", json!({"path": "missing"}))
            .await
            .contains("does not exist")
    );
}

#[tokio::test]
async fn a_large_folder_is_cut() {
    let env = TestEnv::new();
    for number in 0..1_010 {
        env.file(&format!("f{number}"), "");
    }
    let reply = env.call("LS", json!({"path": "."})).await.unwrap();
    assert!(
        reply
            .all_text()
            .contains("[truncated: 1000 of 1010 entries")
    );
    assert_eq!(reply.structured().unwrap()["total"], 1_010);
}

#[tokio::test]
async fn rules_are_followed_wherever_they_stand() {
    let env = TestEnv::new();
    env.file(".gitignore", "\u{feff}*.log\n/made/\n# a comment\n[\n");
    env.file(".ignore", "!kept.log\n");
    env.file("inner/.gitignore", "!seen.log\n/only\n");
    for name in [
        "a.log",
        "kept.log",
        "made/x",
        "inner/made/x",
        "inner/seen.log",
        "inner/other.log",
        "inner/only",
        "inner/deep/only",
        "zlast/b.log",
        "zlast/only",
    ] {
        env.file(name, "x");
    }
    let glob = async |path: &str| {
        let reply = env
            .call("Glob", json!({"pattern": "**/*", "path": path}))
            .await
            .unwrap();
        let files = reply.structured().unwrap()["files"].clone();
        let mut files: Vec<String> = serde_json::from_value(files).unwrap();
        files.sort();
        files.join(" ")
    };
    assert_eq!(
        glob(".").await,
        "inner/deep/only inner/made/x inner/seen.log kept.log zlast/only"
    );
    // Those of the folders above hold too, but not those of another repository.
    assert_eq!(
        glob("inner").await,
        "inner/deep/only inner/made/x inner/seen.log"
    );
    env.file("zlast/.git/HEAD", "x");
    assert_eq!(glob("zlast").await, "zlast/b.log zlast/only");
}

#[tokio::test]
async fn rules_that_are_no_small_files_are_not_read() {
    let env = TestEnv::new();
    let pipe = |name: &str| {
        rustix::fs::mkfifoat(rustix::fs::CWD, env.path(name), rustix::fs::Mode::RWXU).unwrap();
    };
    for name in ["pipes/inner/x", "links/x", "large/x", "zlast/x", "zlast/y"] {
        env.file(name, "needle\n");
    }
    for name in [".ignore", ".gitignore", "pipes/.ignore", "pipes/.gitignore"] {
        pipe(name);
    }
    symlink("/dev/zero", env.path("links/.ignore")).unwrap();
    symlink("/dev/zero", env.path("links/.gitignore")).unwrap();
    env.file("large/.gitignore", "x\n".repeat(200_000));
    env.file("zlast/.gitignore", "x\n");
    let found = env.text("Grep", json!({"pattern": "needle"})).await;
    for name in ["pipes/inner/x", "links/x", "large/x", "zlast/y"] {
        assert!(found.contains(name), "{name}: {found}");
    }
    assert!(!found.contains("zlast/x"), "{found}");
    // Above where the search begins as well.
    let found = env
        .text("Grep", json!({"pattern": "needle", "path": "pipes/inner"}))
        .await;
    assert!(found.contains("pipes/inner/x"), "{found}");
}
