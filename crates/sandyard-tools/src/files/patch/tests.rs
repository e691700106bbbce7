//! Patches of real files.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::apply_patch_below;
use crate::files::test_env::TestEnv;

fn patch(body: &str) -> serde_json::Value {
    json!({"input": format!("*** Begin Patch\n{body}\n*** End Patch")})
}

async fn apply(env: &TestEnv, body: &str) -> String {
    env.text("apply_patch", patch(body)).await
}

async fn refuse(env: &TestEnv, body: &str, expected: &str) {
    let problem = env.problem("apply_patch", patch(body)).await;
    assert!(problem.contains(expected), "{expected}: {problem}");
}

#[tokio::test]
async fn files_are_added_updated_moved_and_deleted_together() {
    let env = TestEnv::new();
    env.file("old.txt", "a\nb\nc\n");
    env.file("gone.bin", b"\0\xff");
    env.file("from.sh", "#!/bin/sh\necho hello\n");
    std::fs::set_permissions(env.path("from.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let reply = apply(
        &env,
        "*** Add File: new/file.txt\n+first\n+\n+third\n*** Update File: old.txt\n@@\n a\n-b\n+B\n c\n\
         *** Delete File: gone.bin\n\
         *** Update File: from.sh\n*** Move to: bin/to.sh\n@@\n #!/bin/sh\n-echo hello\n+echo bye",
    )
    .await;
    assert_eq!(env.content("new/file.txt"), "first\n\nthird\n");
    assert_eq!(env.content("old.txt"), "a\nB\nc\n");
    assert_eq!(env.content("bin/to.sh"), "#!/bin/sh\necho bye\n");
    assert_eq!(
        env.path("bin/to.sh")
            .metadata()
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o755
    );
    assert!(!env.path("gone.bin").exists() && !env.path("from.sh").exists());
    for line in [
        "A new/file.txt",
        "M old.txt",
        "D gone.bin",
        "D from.sh",
        "A bin/to.sh",
        "-b\n+B",
    ] {
        assert!(reply.contains(line), "{line}: {reply}");
    }
    let left: Vec<_> = std::fs::read_dir(env.path(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left.len(), 3, "{left:?}");
}

#[tokio::test]
async fn changes_are_found_by_their_lines_and_headers() {
    let env = TestEnv::new();
    env.file(
        "a.py",
        "class A:\n    def f(self):\n        pass\n\nclass B:\n    def f(self):\n        pass\n",
    );
    apply(
        &env,
        "*** Update File: a.py\n@@ class B:\n@@     def f(self):\n-        pass\n+        return 1",
    )
    .await;
    assert_eq!(
        env.content("a.py"),
        "class A:\n    def f(self):\n        pass\n\nclass B:\n    def f(self):\n        return 1\n"
    );
    // Without a place: at the end. With a header: after it.
    apply(
        &env,
        "*** Update File: a.py\n@@\n+# end\n*** Update File: a.py\n@@ class A:\n+    x = 1",
    )
    .await;
    assert!(
        env.content("a.py")
            .starts_with("class A:\n    x = 1\n    def f")
    );
    assert!(env.content("a.py").ends_with("return 1\n# end\n"));
    env.file("same", "x\ny\nx\n");
    apply(
        &env,
        "*** Update File: same\n@@\n-x\n+last\n*** End of File",
    )
    .await;
    assert_eq!(env.content("same"), "x\ny\nlast\n");
    // An empty line whose space was lost; no @@ before the first change; several changes.
    env.file("several", "1\n\n2\n3\n4\n5\n");
    apply(
        &env,
        "*** Update File: several\n 1\n\n-2\n+two\n@@\n 4\n-5\n+five\n+six",
    )
    .await;
    assert_eq!(env.content("several"), "1\n\ntwo\n3\n4\nfive\nsix\n");
}

#[tokio::test]
async fn empty_lines_between_files_mean_nothing() {
    let env = TestEnv::new();
    env.file("b", "1\n2\n");
    env.file("c", "3\n\n\n4\n");
    let body = "\n*** Add File: a\n+x\n\n\n*** Update File: b\n@@\n-1\n+one\n\n\
         *** Delete File: d\n\n*** Update File: c\n 3\n\n\n-4\n+four\n";
    env.file("d", "");
    apply(&env, body).await;
    assert_eq!(env.content("a"), "x\n");
    assert_eq!(env.content("b"), "one\n2\n");
    assert_eq!(env.content("c"), "3\n\n\nfour\n");
    assert!(!env.path("d").exists());
}

#[tokio::test]
async fn spaces_at_the_end_and_ends_of_lines_stay_as_the_file_has_them() {
    let env = TestEnv::new();
    env.file("spaces", "a  \nb\t\nc");
    apply(&env, "*** Update File: spaces\n@@\n a\n-b\n+B").await;
    assert_eq!(env.content("spaces"), "a  \nB\nc");
    env.file("windows", "a\r\nb\r\nc\r\n");
    apply(&env, "*** Update File: windows\n@@\n a\n-b\n+B\n+B2\n c").await;
    assert_eq!(env.content("windows"), "a\r\nB\r\nB2\r\nc\r\n");
    env.file("exact", "x \nx\n");
    apply(&env, "*** Update File: exact\n@@\n-x\n+y").await;
    assert_eq!(
        env.content("exact"),
        "x \ny\n",
        "what is exactly so comes first"
    );
}

#[tokio::test]
async fn nothing_is_done_unless_everything_can_be() {
    let env = TestEnv::new();
    env.file("a", "1\n2\n3\n");
    let begin = "*** Add File: new\n+x\n*** Delete File: a\n";
    for (body, words) in [
        (
            "*** Update File: missing\n@@\n-a\n+b",
            "no missing to be updated",
        ),
        ("*** Add File: new\n+y", "new is there already"),
        ("*** Delete File: missing", "missing"),
        ("*** Delete File: a", "removes a"),
        ("*** Update File: a\n@@\n-1\n+b", "removes a"),
        ("*** Add File: ../out\n+x", "outside of the workspace"),
        ("*** Add File: /etc/new\n+x", "outside of the workspace"),
        ("*** Delete File: .", "is a folder"),
    ] {
        refuse(&env, &format!("{begin}{body}"), words).await;
        assert!(!env.path("new").exists(), "{body}");
        assert_eq!(env.content("a"), "1\n2\n3\n", "{body}");
    }
    for (body, words) in [
        (
            "@@\n-1\n+one\n@@\n-4\n+four",
            "change 2 of a: the file has no line \"4\"",
        ),
        ("@@\n-2\n+two\n@@\n-1\n+one", "in the file's order"),
        ("@@\n 1\n-3\n+three", "not one after the other"),
        ("@@\n-1\n+one\n*** End of File", "not at its end"),
        ("@@ nowhere\n-1\n+one", "no line \"nowhere\""),
        ("*** Move to: a\n@@\n-1\n+one", "where it is"),
    ] {
        refuse(&env, &format!("*** Update File: a\n{body}"), words).await;
        assert_eq!(env.content("a"), "1\n2\n3\n", "{body}");
    }
}

#[tokio::test]
async fn what_fails_while_it_is_done_is_taken_back() {
    let env = TestEnv::new();
    env.file("a", "1\n");
    env.file("b", "2\n");
    env.file("c", "a file, so that no folder can be made\n");
    refuse(
        &env,
        "*** Update File: a\n@@\n-1\n+one\n*** Delete File: b\n*** Add File: b2\n+x\n*** Add File: c2/../c/file\n+x",
        "",
    )
    .await;
    assert_eq!(
        (env.content("a"), env.content("b")),
        ("1\n".to_owned(), "2\n".to_owned())
    );
    assert!(!env.path("b2").exists());
    let names = std::fs::read_dir(env.path("")).unwrap().count();
    assert_eq!(names, 3, "nothing is left over");
}

#[tokio::test]
async fn what_is_no_patch_is_explained() {
    let env = TestEnv::new();
    env.file("a", "1\n");
    for (input, words) in [
        ("", "Begin Patch"),
        ("diff --git a b", "Begin Patch"),
        ("*** Begin Patch", "End Patch"),
        ("*** Begin Patch\n*** End Patch", "empty"),
        ("*** Begin Patch\nhello\n*** End Patch", "line 2"),
        (
            "*** Begin Patch\n*** Add File: \n+x\n*** End Patch",
            "names no file",
        ),
        (
            "*** Begin Patch\n*** Add File: x\nhello\n*** End Patch",
            "starts with +",
        ),
        (
            "*** Begin Patch\n*** Delete File: a\n+x\n*** End Patch",
            "follow a deletion",
        ),
        (
            "*** Begin Patch\n*** Update File: a\n*** End Patch",
            "changes nothing",
        ),
        (
            "*** Begin Patch\n*** Update File: a\n@@ x\n*** End Patch",
            "no change after it",
        ),
        (
            "*** Begin Patch\n*** Update File: a\n@@\nhello\n*** End Patch",
            "a space, - or +",
        ),
        (
            "*** Begin Patch\n*** Update File: a\n*** End of File\n*** End Patch",
            "follow a change",
        ),
    ] {
        let problem = env.problem("apply_patch", json!({"input": input})).await;
        assert!(problem.contains(words), "{input}: {problem}");
    }
    assert_eq!(env.content("a"), "1\n");
}

#[test]
fn a_patch_can_be_kept_in_a_folder() {
    let env = TestEnv::new();
    env.file("slides/a", "1\n");
    env.file("other", "1\n");
    let workspace = &env.tool_state.workspace;
    let apply = |path: &str| {
        let input = format!("*** Begin Patch\n*** Update File: {path}\n@@\n-1\n+2\n*** End Patch");
        apply_patch_below(workspace, &env.path("slides"), &input)
    };
    let changed = apply("a").unwrap();
    assert_eq!(changed[0].after.as_deref(), Some("2\n"));
    for outside in [
        "../other",
        "/etc/passwd",
        &env.path("other").display().to_string(),
    ] {
        assert!(apply(outside).is_err(), "{outside}");
    }
    assert_eq!(env.content("other"), "1\n");
}
