//! `ASTGrep`.

use serde_json::json;

use crate::files::test_env::TestEnv;

#[tokio::test]
async fn code_is_found_by_its_structure() {
    let env = TestEnv::new();
    env.file("a.rs", "fn main() {\n    let x = call( 1,\n        2 );\n    // call(3)\n    let s = \"call(4)\";\n}\n");
    env.file("b.py", "def f():\n    return call(5)\n");
    env.file("c.ts", "const y: number = call(6);\n");
    env.file("d.txt", "call(7)\n");
    let reply = env
        .call("ASTGrep", json!({"pattern": "call($$$ARGS)"}))
        .await
        .unwrap();
    let text = reply.all_text();
    assert_eq!(
        text,
        "a.rs:2:\n    call( 1,\n            2 )\nb.py:2:\n    call(5)\nc.ts:1:\n    call(6)\n[3 matches]\n"
    );
    let structured = reply.structured().unwrap();
    assert_eq!(structured["matches"][0]["end_line"], 3);
    assert_eq!(structured["matches"][1]["language"], "python");
    let one = env
        .text(
            "ASTGrep",
            json!({"pattern": "call($A)", "language": "python"}),
        )
        .await;
    assert!(
        one.starts_with("b.py:2:") && one.contains("[1 matches]"),
        "{one}"
    );
    let one = env
        .text("ASTGrep", json!({"pattern": "call($A)", "include": "*.ts"}))
        .await;
    assert!(one.starts_with("c.ts:1:"), "{one}");
    // A file that is named is read as what is said.
    let named = env
        .text(
            "ASTGrep",
            json!({"pattern": "call($A)", "path": "d.txt", "language": "javascript"}),
        )
        .await;
    assert!(named.starts_with("d.txt:1:"), "{named}");
    let none = env.text("ASTGrep", json!({"pattern": "other($A)"})).await;
    assert!(none.contains("no code matches"), "{none}");
}

#[tokio::test]
async fn every_language_can_be_searched() {
    let env = TestEnv::new();
    for (name, code, pattern) in [
        ("a.sh", "echo hello world\n", "echo $$$A"),
        ("a.c", "int main(void) { return f(1); }\n", "return $A;"),
        ("a.cpp", "int main() { return f(1); }\n", "return $A;"),
        ("a.css", "a { color: red; }\n", "a { color: $A; }"),
        (
            "a.go",
            "package a\nfunc f() { g(1) }\n",
            "func f() { $$$B }",
        ),
        ("a.html", "<p>hello</p>\n", "<p>$A</p>"),
        (
            "A.java",
            "class A { int f() { return 1; } }\n",
            "return $A;",
        ),
        ("a.js", "f(1)\n", "f($A)"),
        ("a.json", "{\"a\": [1]}\n", "[$A]"),
        ("a.py", "x = f(1)\n", "f($A)"),
        ("a.rs", "fn f() { g(1); }\n", "g($A)"),
        ("a.tsx", "const a = <b>{f(1)}</b>;\n", "f($A)"),
        ("a.ts", "const a: B = f(1);\n", "f($A)"),
        ("a.yaml", "a: b\n", "a: $B"),
    ] {
        env.file(name, code);
        let found = env
            .text("ASTGrep", json!({"pattern": pattern, "path": name}))
            .await;
        assert!(found.starts_with(&format!("{name}:")), "{name}: {found}");
    }
}

#[tokio::test]
async fn mistakes_are_explained_and_much_is_cut() {
    let env = TestEnv::new();
    env.file("a.js", "f(1);\n".repeat(150));
    let reply = env
        .call("ASTGrep", json!({"pattern": "f($A)"}))
        .await
        .unwrap();
    assert_eq!(
        reply.structured().unwrap()["matches"]
            .as_array()
            .unwrap()
            .len(),
        100
    );
    assert!(reply.all_text().contains("[truncated: there are more"));
    env.file("long.js", format!("g({}1)", "1,\n".repeat(100)));
    let long = env.text("ASTGrep", json!({"pattern": "g($$$A)"})).await;
    assert!(long.contains("[91 more lines]"), "{long}");
    for (arguments, words) in [
        (json!({"pattern": ""}), "empty"),
        (json!({"pattern": "f(".repeat(1_001)}), "2000 bytes"),
        (
            json!({"pattern": "f(", "language": "javascript"}),
            "not valid code",
        ),
        (
            json!({"pattern": "a", "language": "cobol"}),
            "use one of bash, c,",
        ),
        (json!({"pattern": "a", "language": "swift"}), "use one of"),
        (
            json!({"pattern": "a", "path": "/etc"}),
            "outside of the workspace",
        ),
    ] {
        let problem = env.problem("ASTGrep", arguments.clone()).await;
        assert!(problem.contains(words), "{arguments}: {problem}");
    }
}

#[tokio::test]
async fn code_that_is_very_deep_does_no_harm() {
    let env = TestEnv::new();
    // The parser makes one long row of what is never closed.
    env.file("open.js", "(".repeat(1024 * 1024));
    env.file(
        "closed.js",
        format!("{}1{}", "[".repeat(1_500), "]".repeat(1_500)),
    );
    env.file(
        "deeper.js",
        format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000)),
    );
    env.file("good.js", "f(1)");
    let found = env.text("ASTGrep", json!({"pattern": "f($A)"})).await;
    assert!(found.contains("good.js:1:"), "{found}");
    assert!(found.contains("[1 files were skipped"), "{found}");
    let pattern = format!("{}$A{}", "[".repeat(900), "]".repeat(900));
    let found = env
        .text(
            "ASTGrep",
            json!({"pattern": pattern, "language": "javascript"}),
        )
        .await;
    assert!(found.contains("closed.js"), "{found}");
}
