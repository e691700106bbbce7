//! `Grep`.

use std::os::unix::fs::symlink;

use serde_json::json;

use crate::call::Call;
use crate::files::test_env::TestEnv;

#[tokio::test]
async fn lines_are_found_in_the_order_of_paths() {
    let env = TestEnv::new();
    env.file("b.txt", "nothing\nNeedle 1\n");
    env.file("a/x.rs", "needle 2\nneedle 3\n");
    let reply = env
        .call("Grep", json!({"pattern": "(?i)needle \\d"}))
        .await
        .unwrap();
    assert_eq!(
        reply.all_text(),
        "a/x.rs:1:needle 2\na/x.rs:2:needle 3\nb.txt:2:Needle 1\n[3 lines in 2 files]\n"
    );
    let structured = reply.structured().unwrap();
    assert_eq!(
        structured["matches"][2],
        json!({"path": "b.txt", "line": 2, "text": "Needle 1"})
    );
    assert_eq!(structured["truncated"], false);
    let part = env
        .text(
            "Grep",
            json!({"pattern": "needle", "path": "a", "include": "*.rs"}),
        )
        .await;
    assert!(part.starts_with("a/x.rs:1:"), "{part}");
    for include in ["*.py", "b/*.rs"] {
        let none = env
            .text("Grep", json!({"pattern": "needle", "include": include}))
            .await;
        assert!(none.contains("no line matches"), "{none}");
    }
    let file = env
        .text("Grep", json!({"pattern": "needle", "path": "a/x.rs"}))
        .await;
    assert!(file.contains("[2 lines in 1 files]"), "{file}");
    let inner = env
        .text(
            "Grep",
            json!({"pattern": "needle", "include": "a/*.{rs,ts}"}),
        )
        .await;
    assert!(inner.contains("[2 lines"), "{inner}");
}

#[tokio::test]
async fn what_is_hidden_ignored_binary_or_outside_is_left_out() {
    let env = TestEnv::new();
    env.file(".hidden", "needle\n");
    env.file("target/made", "needle\n");
    env.file(".gitignore", "target/\n");
    env.file("binary", b"needle\n\0\n");
    env.file(".git/config", "needle\n");
    std::fs::write(env.folder.path().join("secret"), "needle\n").unwrap();
    std::fs::create_dir(env.folder.path().join("outside")).unwrap();
    std::fs::write(env.folder.path().join("outside/secret"), "needle\n").unwrap();
    symlink("../secret", env.path("link")).unwrap();
    symlink("../outside", env.path("folder")).unwrap();
    symlink(".", env.path("loop")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, env.path("pipe"), rustix::fs::Mode::RWXU).unwrap();
    let none = env.text("Grep", json!({"pattern": "needle"})).await;
    assert!(none.contains("no line matches"), "{none}");
    for path in ["link", "folder", "..", "/etc"] {
        let problem = env
            .problem("Grep", json!({"pattern": "needle", "path": path}))
            .await;
        assert!(problem.contains("outside of the workspace"), "{problem}");
    }
    // A file that the call names is searched.
    let named = env
        .text("Grep", json!({"pattern": "needle", "path": ".hidden"}))
        .await;
    assert!(named.starts_with(".hidden:1:needle"), "{named}");
}

#[tokio::test]
async fn much_is_cut_and_mistakes_are_explained() {
    let env = TestEnv::new();
    env.file("many", "needle\n".repeat(500));
    let reply = env
        .call("Grep", json!({"pattern": "needle"}))
        .await
        .unwrap();
    assert_eq!(
        reply.structured().unwrap()["matches"]
            .as_array()
            .unwrap()
            .len(),
        200
    );
    assert_eq!(reply.structured().unwrap()["truncated"], true);
    assert!(reply.all_text().contains("[truncated: there are more"));
    env.file("long", format!("start{}\n", "x".repeat(10_000)));
    let long = env.text("Grep", json!({"pattern": "start"})).await;
    assert!(long.len() < 700 && long.contains(" [truncated]"), "{long}");
    env.file("control", "\x1b[31mred\rover\n");
    let control = env.text("Grep", json!({"pattern": "red"})).await;
    assert!(!control.contains(['\x1b', '\r']), "{control:?}");
    for wrong in ["(", "a\\nb", "[z-a]", "(a{1000}){1000}"] {
        let problem = env.problem("Grep", json!({"pattern": wrong})).await;
        assert!(problem.contains("invalid regular expression"), "{problem}");
    }
    let problem = env
        .problem("Grep", json!({"pattern": "a", "include": "[" }))
        .await;
    assert!(problem.contains("invalid file pattern"), "{problem}");
    let problem = env
        .problem("Grep", json!({"pattern": "a", "path": "missing" }))
        .await;
    assert!(problem.contains("does not exist"), "{problem}");
}

#[tokio::test]
async fn a_cancelled_search_ends() {
    let env = TestEnv::new();
    env.file("a", "needle\n");
    for tool in ["Grep", "Glob", "ASTGrep"] {
        let call = Call::quiet();
        call.cancelled.cancel();
        let reply = env
            .call_with(tool, json!({"pattern": "needle"}), call)
            .await
            .unwrap();
        assert!(
            reply.all_text().contains("the time limit was reached"),
            "{tool}"
        );
        assert_eq!(reply.structured().unwrap()["truncated"], true);
    }
}
