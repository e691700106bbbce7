//! The editor with its memory.

use serde_json::{Value, json};

use crate::files::test_env::TestEnv;

const EDITOR: &str = "str_replace_based_edit_tool";

async fn edit(env: &TestEnv, arguments: Value) -> String {
    env.text(EDITOR, arguments).await
}

#[tokio::test]
async fn files_and_folders_are_viewed() {
    let env = TestEnv::new();
    env.file("src/a.rs", "one\ntwo\nthree\n");
    env.file("src/deep/er/b.rs", "");
    env.file(".hidden/x", "");
    assert_eq!(
        edit(&env, json!({"command": "view", "path": "src/a.rs"})).await,
        "     1\tone\n     2\ttwo\n     3\tthree\n"
    );
    let part = edit(
        &env,
        json!({"command": "view", "path": "src/a.rs", "view_range": [2, 2]}),
    )
    .await;
    assert!(part.starts_with("     2\ttwo\n["), "{part}");
    let rest = edit(
        &env,
        json!({"command": "view", "path": "src/a.rs", "view_range": [2, -1]}),
    )
    .await;
    assert_eq!(rest, "     2\ttwo\n     3\tthree\n");
    for wrong in [json!([0, 1]), json!([3, 2]), json!([1]), json!([])] {
        let arguments = json!({"command": "view", "path": "src/a.rs", "view_range": wrong});
        assert!(env.problem(EDITOR, arguments).await.contains("two numbers"));
    }
    let folder = edit(&env, json!({"command": "view", "path": "."})).await;
    assert!(folder.ends_with("src/\n  deep/\n  a.rs (14)\n"), "{folder}");
    env.problem(
        EDITOR,
        json!({"command": "view", "path": ".", "view_range": [1, 2]}),
    )
    .await;
    env.problem(EDITOR, json!({"command": "view", "path": "/etc/passwd"}))
        .await;
    assert!(
        env.problem(EDITOR, json!({"command": "fly", "path": "x"}))
            .await
            .contains("arguments")
    );
}

#[tokio::test]
async fn every_change_can_be_taken_back_down_to_the_creation() {
    let env = TestEnv::new();
    edit(
        &env,
        json!({"command": "create", "path": "a", "file_text": "one\ntwo\n"}),
    )
    .await;
    edit(
        &env,
        json!({"command": "str_replace", "path": "a", "old_str": "two", "new_str": "2"}),
    )
    .await;
    edit(
        &env,
        json!({"command": "insert", "path": "a", "insert_line": 1, "new_str": "between"}),
    )
    .await;
    edit(
        &env,
        json!({"command": "insert", "path": "a", "insert_line": 0, "insert_text": "top\n"}),
    )
    .await;
    edit(
        &env,
        json!({"command": "create", "path": "b", "file_text": "other"}),
    )
    .await;
    assert_eq!(env.content("a"), "top\none\nbetween\n2\n");
    let undo = json!({"command": "undo_edit", "path": "a"});
    let mut contents = Vec::new();
    for _ in 0..3 {
        assert!(edit(&env, undo.clone()).await.contains("@@"));
        contents.push(env.content("a"));
    }
    assert_eq!(contents, ["one\nbetween\n2\n", "one\n2\n", "one\ntwo\n"]);
    assert!(edit(&env, undo.clone()).await.contains("removed"));
    assert!(!env.path("a").exists());
    assert!(env.problem(EDITOR, undo).await.contains("no change"));
    assert_eq!(env.content("b"), "other");
}

#[tokio::test]
async fn changes_of_others_are_not_taken_back() {
    let env = TestEnv::new();
    edit(
        &env,
        json!({"command": "create", "path": "a", "file_text": "one"}),
    )
    .await;
    env.file("a", "by hand");
    let undo = json!({"command": "undo_edit", "path": "a"});
    assert!(
        env.problem(EDITOR, undo.clone())
            .await
            .contains("another program")
    );
    assert_eq!(env.content("a"), "by hand");
    // As it was again: then it can be.
    env.file("a", "one");
    edit(&env, undo).await;
    assert!(!env.path("a").exists());
}

#[tokio::test]
async fn wrong_uses_are_explained() {
    let env = TestEnv::new();
    env.file("a", "x\nx\n");
    for (arguments, words) in [
        (json!({"command": "create", "path": "b"}), "file_text"),
        (
            json!({"command": "str_replace", "path": "a", "new_str": "y"}),
            "old_str",
        ),
        (
            json!({"command": "str_replace", "path": "a", "old_str": "x"}),
            "2 times",
        ),
        (
            json!({"command": "str_replace", "path": "b", "old_str": "x"}),
            "b does not exist",
        ),
        (
            json!({"command": "insert", "path": "a", "new_str": "y"}),
            "insert_line",
        ),
        (
            json!({"command": "insert", "path": "a", "insert_line": 3, "new_str": "y"}),
            "from 0 to 2",
        ),
        (json!({"command": "undo_edit", "path": "a"}), "no change"),
    ] {
        let problem = env.problem(EDITOR, arguments).await;
        assert!(problem.contains(words), "{words}: {problem}");
    }
    assert_eq!(env.content("a"), "x\nx\n");
    env.file("windows", "\u{feff}1\r\n2");
    edit(
        &env,
        json!({"command": "insert", "path": "windows", "insert_line": 2, "new_str": "3\n4"}),
    )
    .await;
    edit(
        &env,
        json!({"command": "insert", "path": "windows", "insert_line": 0, "new_str": "0"}),
    )
    .await;
    assert_eq!(env.content("windows"), "\u{feff}0\r\n1\r\n2\r\n3\r\n4");
}
