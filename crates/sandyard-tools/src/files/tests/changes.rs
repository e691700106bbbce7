//! Writing and editing.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

use serde_json::json;

use crate::files::test_env::TestEnv;

fn mode(env: &TestEnv, name: &str) -> u32 {
    env.path(name).symlink_metadata().unwrap().mode() & 0o7777
}

/// What is in the workspace besides what is expected, such as files left over.
fn names(env: &TestEnv) -> Vec<String> {
    let entries = std::fs::read_dir(env.path("")).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn files_are_created_with_their_folders_and_replaced_whole() {
    let env = TestEnv::new();
    let reply = env
        .text(
            "Write",
            json!({"file_path": "a/b/c.txt", "content": "one\ntwo\n"}),
        )
        .await;
    assert_eq!(reply, "created a/b/c.txt: 2 lines, 8 bytes");
    let path = env.path("a/b/c.txt");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o751)).unwrap();
    let before = path.symlink_metadata().unwrap();
    let reply = env
        .text(
            "Write",
            json!({"file_path": "a/b/c.txt", "content": "one\nthree\n"}),
        )
        .await;
    assert!(reply.contains("-two\n+three"), "{reply}");
    let after = path.symlink_metadata().unwrap();
    assert_eq!(env.content("a/b/c.txt"), "one\nthree\n");
    assert_eq!(
        (after.mode(), after.uid(), after.gid()),
        (before.mode(), before.uid(), before.gid())
    );
    if rustix::process::geteuid().is_root() {
        chown(&path, Some(12_345), Some(54_321)).unwrap();
        env.text(
            "Edit",
            json!({"file_path": "a/b/c.txt", "old_string": "three", "new_string": "four"}),
        )
        .await;
        let owned = path.symlink_metadata().unwrap();
        assert_eq!(
            (owned.uid(), owned.gid(), owned.mode()),
            (12_345, 54_321, before.mode())
        );
        env.text(
            "Edit",
            json!({"file_path": "a/b/c.txt", "old_string": "four", "new_string": "three"}),
        )
        .await;
    }
    assert_ne!(
        after.ino(),
        before.ino(),
        "whoever reads the old one reads it to its end"
    );
    let reply = env
        .text(
            "Write",
            json!({"file_path": "a/b/c.txt", "content": "one\nthree\n"}),
        )
        .await;
    assert!(reply.contains("is unchanged"), "{reply}");
    env.file("binary", b"\0\xff");
    let reply = env
        .text("Write", json!({"file_path": "binary", "content": "x"}))
        .await;
    assert!(reply.starts_with("replaced binary"), "{reply}");
    env.text("write_file", json!({"path": "short", "content": "x"}))
        .await;
    env.text("write_file", json!({"file_path": "short", "content": "y"}))
        .await;
    assert_eq!(env.content("short"), "y");
    assert_eq!(names(&env), ["a", "binary", "short"]);
}

#[tokio::test]
async fn links_are_followed_inside_only() {
    let env = TestEnv::new();
    env.file("real", "x\n");
    symlink("real", env.path("link")).unwrap();
    symlink("new", env.path("dangling")).unwrap();
    symlink("../outside", env.path("out")).unwrap();
    env.text("Write", json!({"file_path": "link", "content": "y\n"}))
        .await;
    env.text(
        "Edit",
        json!({"file_path": "link", "old_string": "y", "new_string": "z"}),
    )
    .await;
    assert_eq!(env.content("real"), "z\n");
    assert!(env.path("link").is_symlink());
    env.text("Write", json!({"file_path": "dangling", "content": "n"}))
        .await;
    assert_eq!(env.content("new"), "n");
    env.problem("Write", json!({"file_path": "out", "content": "n"}))
        .await;
    assert!(!env.folder.path().join("outside").exists());
}

#[tokio::test]
async fn a_file_that_may_not_be_written_stays() {
    let env = TestEnv::new();
    env.file("a/file", "x");
    let problem = env
        .problem("Write", json!({"file_path": "a/file/b", "content": "n"}))
        .await;
    assert!(problem.contains("a/file/b"), "{problem}");
    std::fs::set_permissions(env.path("a/file"), std::fs::Permissions::from_mode(0o444)).unwrap();
    let answer = env
        .call("Write", json!({"file_path": "a/file", "content": "n"}))
        .await;
    if rustix::process::geteuid().is_root() {
        // Root may; the mode stays all the same.
        answer.unwrap();
        assert_eq!(mode(&env, "a/file"), 0o444);
    } else {
        assert!(answer.unwrap_err().to_string().contains("chmod"));
        assert_eq!(env.content("a/file"), "x");
    }
}

#[tokio::test]
async fn one_match_is_replaced_and_the_diff_is_returned() {
    let env = TestEnv::new();
    env.file("a", "fn one() {}\nfn two() {}\n");
    std::fs::set_permissions(env.path("a"), std::fs::Permissions::from_mode(0o700)).unwrap();
    let reply = env
        .text(
            "Edit",
            json!({"file_path": "a", "old_string": "fn two()", "new_string": "fn three()"}),
        )
        .await;
    assert!(reply.contains("--- a\n+++ a\n@@"), "{reply}");
    assert!(reply.contains("-fn two() {}\n+fn three() {}"), "{reply}");
    assert_eq!(env.content("a"), "fn one() {}\nfn three() {}\n");
    assert_eq!(mode(&env, "a"), 0o700);
    // A sign of regular expressions is none here.
    env.file("b", "a.c abc $1\n");
    env.text(
        "Edit",
        json!({"file_path": "b", "old_string": "a.c", "new_string": "$0"}),
    )
    .await;
    assert_eq!(env.content("b"), "$0 abc $1\n");
}

#[tokio::test]
async fn what_is_not_there_or_not_clear_is_explained() {
    let env = TestEnv::new();
    env.file("a", "\tlet x = 1;\nlet y = 2;\nlet y = 2;\n");
    let edit =
        |old: &str, new: &str| json!({"file_path": "a", "old_string": old, "new_string": new});
    let problem = env.problem("Edit", edit("  let x = 1;\n  more", "z")).await;
    assert!(
        problem.contains("most similar to line 1") && problem.contains("\\tlet x = 1;"),
        "{problem}"
    );
    let problem = env.problem("Edit", edit("let y = 2;", "z")).await;
    assert!(
        problem.contains("2 times in a (lines 2, 3)") && problem.contains("replace_all"),
        "{problem}"
    );
    let problem = env.problem("Edit", edit("     1\tlet x = 1;", "z")).await;
    assert!(problem.contains("leave out the line numbers"), "{problem}");
    let problem = env.problem("Edit", edit("same", "same")).await;
    assert!(problem.contains("are the same"), "{problem}");
    let problem = env.problem("Edit", edit("", "z")).await;
    assert!(problem.contains("exists already"), "{problem}");
    let missing = json!({"file_path": "missing", "old_string": "a", "new_string": "b"});
    assert!(env.problem("Edit", missing).await.contains("Write"));
    env.file("latin", b"caf\xe9");
    let latin = json!({"file_path": "latin", "old_string": "caf", "new_string": "b"});
    assert!(env.problem("Edit", latin).await.contains("UTF-8"));
    env.file("grows", "x".repeat(100_000));
    let grows = json!({"file_path": "grows", "old_string": "x", "new_string": "y".repeat(1_000), "replace_all": true});
    assert!(
        env.problem("Edit", grows)
            .await
            .contains("100000 occurrences")
    );
    let all = json!({"file_path": "a", "old_string": "let y", "new_string": "let z", "replace_all": true});
    env.text("Edit", all).await;
    assert_eq!(env.content("a"), "\tlet x = 1;\nlet z = 2;\nlet z = 2;\n");
    let new = json!({"file_path": "new/file", "old_string": "", "new_string": "b\n"});
    assert!(env.text("Edit", new).await.contains("created"));
    assert_eq!(env.content("new/file"), "b\n");
}

#[tokio::test]
async fn ends_of_lines_and_the_mark_at_the_start_stay() {
    let env = TestEnv::new();
    env.file("windows", "\u{feff}one\r\ntwo\r\nthree\r\n");
    let edit = json!({"file_path": "windows", "old_string": "one\ntwo", "new_string": "1\n2\n2.5"});
    let reply = env.text("Edit", edit).await;
    assert!(reply.contains("+2.5"), "{reply}");
    assert_eq!(env.content("windows"), "\u{feff}1\r\n2\r\n2.5\r\nthree\r\n");
    env.text(
        "Edit",
        json!({"file_path": "windows", "old_string": "three", "new_string": "3\n4"}),
    )
    .await;
    assert_eq!(
        env.content("windows"),
        "\u{feff}1\r\n2\r\n2.5\r\n3\r\n4\r\n"
    );
    env.file("mixed", "one\r\ntwo\nthree\n");
    env.text(
        "Edit",
        json!({"file_path": "mixed", "old_string": "two\nthree", "new_string": "2\n3"}),
    )
    .await;
    assert_eq!(env.content("mixed"), "one\r\n2\n3\n");
}

#[tokio::test]
async fn changes_at_once_are_made_one_after_the_other() {
    let env = TestEnv::new();
    let lines: Vec<_> = (0..20).map(|number| format!("line {number};")).collect();
    env.file("a", lines.join("\n"));
    let edits = (0..20).map(|number| {
        let edit = json!({"file_path": "a", "old_string": format!("line {number};"), "new_string": format!("done \
        {number};")});
        env.call("Edit", edit)
    });
    for answer in futures_util::future::join_all(edits).await {
        answer.unwrap();
    }
    assert!(!env.content("a").contains("line"));
    assert_eq!(names(&env), ["a"]);
}

#[tokio::test]
async fn a_path_that_names_a_folder_is_refused() {
    let env = TestEnv::new();
    for (tool, arguments) in [
        ("Write", json!({"file_path": "a/", "content": "x"})),
        ("write_file", json!({"path": "a/b/", "content": "x"})),
        (
            "Edit",
            json!({"file_path": "a/", "old_string": "", "new_string": "x"}),
        ),
        (
            "apply_patch",
            json!({"input": "*** Begin Patch\n*** Add File: a/\n+x\n*** End Patch"}),
        ),
        (
            "str_replace_based_edit_tool",
            json!({"command": "create", "path": "a/", "file_text": "x"}),
        ),
    ] {
        let problem = env.problem(tool, arguments).await;
        assert!(problem.contains("is a folder"), "{tool}: {problem}");
    }
    assert!(names(&env).is_empty());
}

#[tokio::test]
async fn a_long_difference_is_cut() {
    let env = TestEnv::new();
    env.file("a", "old\n".repeat(10_000));
    let reply = env
        .text(
            "Write",
            json!({"file_path": "a", "content": "new\n".repeat(10_000)}),
        )
        .await;
    assert!(
        reply.len() < 9_000 && reply.contains("[truncated: the first 8000 of"),
        "{}",
        reply.len()
    );
}
