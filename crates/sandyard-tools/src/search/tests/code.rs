//! `ASTGrep`.

use serde_json::json;

use crate::files::testing::Bench;

#[tokio::test]
async fn code_is_found_by_its_structure() {
    let bench = Bench::new();
    bench.file("a.rs", "fn main() {\n    let x = call( 1,\n        2 );\n    // call(3)\n    let s = \"call(4)\";\n}\n");
    bench.file("b.py", "def f():\n    return call(5)\n");
    bench.file("c.ts", "const y: number = call(6);\n");
    bench.file("d.txt", "call(7)\n");
    let reply = bench
        .call("ASTGrep", json!({"pattern": "call($$$ARGS)"}))
        .await
        .unwrap();
    let text = reply.all_text();
    assert_eq!(
        text,
        "a.rs:2:\n    call( 1,\n            2 )\nb.py:2:\n    call(5)\nc.ts:1:\n    call(6)\n[3 places]\n"
    );
    let told = reply.structured().unwrap();
    assert_eq!(told["matches"][0]["end_line"], 3);
    assert_eq!(told["matches"][1]["language"], "python");
    let one = bench
        .text(
            "ASTGrep",
            json!({"pattern": "call($A)", "language": "python"}),
        )
        .await;
    assert!(
        one.starts_with("b.py:2:") && one.contains("[1 places]"),
        "{one}"
    );
    let one = bench
        .text("ASTGrep", json!({"pattern": "call($A)", "include": "*.ts"}))
        .await;
    assert!(one.starts_with("c.ts:1:"), "{one}");
    // A file that is named is read as what is said.
    let named = bench
        .text(
            "ASTGrep",
            json!({"pattern": "call($A)", "path": "d.txt", "language": "javascript"}),
        )
        .await;
    assert!(named.starts_with("d.txt:1:"), "{named}");
    let none = bench.text("ASTGrep", json!({"pattern": "other($A)"})).await;
    assert!(none.contains("no code matches"), "{none}");
}

#[tokio::test]
async fn every_language_can_be_searched() {
    let bench = Bench::new();
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
        bench.file(name, code);
        let found = bench
            .text("ASTGrep", json!({"pattern": pattern, "path": name}))
            .await;
        assert!(found.starts_with(&format!("{name}:")), "{name}: {found}");
    }
}

#[tokio::test]
async fn mistakes_are_explained_and_much_is_cut() {
    let bench = Bench::new();
    bench.file("a.js", "f(1);\n".repeat(150));
    let reply = bench
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
    assert!(reply.all_text().contains("[cut: there are more"));
    bench.file("long.js", format!("g({}1)", "1,\n".repeat(100)));
    let long = bench.text("ASTGrep", json!({"pattern": "g($$$A)"})).await;
    assert!(long.contains("[91 more lines]"), "{long}");
    for (arguments, words) in [
        (json!({"pattern": ""}), "empty"),
        (json!({"pattern": "f(".repeat(1_001)}), "2000 bytes"),
        (
            json!({"pattern": "f(", "language": "javascript"}),
            "not code of that language",
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
        let problem = bench.problem("ASTGrep", arguments.clone()).await;
        assert!(problem.contains(words), "{arguments}: {problem}");
    }
}

#[tokio::test]
async fn code_that_is_very_deep_does_no_harm() {
    let bench = Bench::new();
    // The parser makes one long row of what is never closed.
    bench.file("open.js", "(".repeat(1024 * 1024));
    bench.file(
        "closed.js",
        format!("{}1{}", "[".repeat(1_500), "]".repeat(1_500)),
    );
    bench.file(
        "deeper.js",
        format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000)),
    );
    bench.file("good.js", "f(1)");
    let found = bench.text("ASTGrep", json!({"pattern": "f($A)"})).await;
    assert!(found.contains("good.js:1:"), "{found}");
    assert!(found.contains("[1 files were left out"), "{found}");
    let pattern = format!("{}$A{}", "[".repeat(900), "]".repeat(900));
    let found = bench
        .text(
            "ASTGrep",
            json!({"pattern": pattern, "language": "javascript"}),
        )
        .await;
    assert!(found.contains("closed.js"), "{found}");
}
