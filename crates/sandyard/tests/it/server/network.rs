//! What a sandbox may reach and secrets it uses, by commands.

use std::io::Write;
use std::process::Stdio;

use serde_json::json;

use super::{Server, said};

#[test]
fn a_policy_is_shown_set_and_changed() {
    let server = Server::start();
    let id = server.out(&[
        "create",
        "--no-internet",
        "--allow",
        "pypi.org",
        "--allow",
        "*.example.com:443",
    ]);
    let shown = server.out(&["network", "show", &id]);
    let lines: Vec<String> = shown
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        lines[..3],
        [
            "internet: no",
            "allowed: pypi.org, *.example.com:443",
            "denied: -"
        ]
    );
    let network = server.json(&["network", "allow", &id, "registry.npmjs.org", "--json"]);
    let expected = json!(["pypi.org", "*.example.com:443", "registry.npmjs.org"]);
    assert_eq!(network["network"]["allow_out"], expected);
    let network = server.json(&["network", "deny", &id, "pypi.org", "*:25", "--json"]);
    assert_eq!(network["network"]["deny_out"], json!(["pypi.org", "*:25"]));
    assert!(server.out(&["info", &id]).contains("no internet, allowed"));

    // What is shown can be given to another.
    let kept = server.out(&["network", "show", &id, "--json"]);
    let file = server.yard().path().join("policy.json");
    std::fs::write(&file, kept).expect("write");
    let other = server.out(&["create"]);
    let file = file.to_str().expect("a path");
    server.out(&["network", "set", &other, "--from", file]);
    assert_eq!(
        server.json(&["network", "show", &other, "--json"])["network"],
        network["network"]
    );
    let open = server.json(&["network", "set", &other, "--internet", "--json"]);
    assert_eq!(open["network"]["allow_internet_access"], true);
    assert_eq!(open["network"]["allow_out"], json!([]));
    assert_eq!(server.out(&["flows", &other, "--denied", "--json"]), "");
    assert!(server.out(&["flows", &other]).starts_with("AT"));
}

#[test]
fn mistakes_are_told_where_they_are_made() {
    let server = Server::start();
    let id = server.out(&["create"]);
    let wrong = server.sandyard(&["network", "allow", &id, "https://pypi.org/"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        said(&wrong).contains("write `pypi.org`, without https://"),
        "{}",
        said(&wrong)
    );
    let wrong = server.sandyard(&["network", "set", &id]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(said(&wrong).contains("--no-internet"), "{}", said(&wrong));
    let file = server.yard().path().join("policy.json");
    std::fs::write(&file, r#"{"allow_out": ["pypi.org", "a b"]}"#).expect("write");
    let file = file.to_str().expect("a path");
    let wrong = server.sandyard(&["network", "set", &id, "--from", file]);
    assert_eq!(wrong.status.code(), Some(125));
    assert!(said(&wrong).contains("allow_out[1]"), "{}", said(&wrong));
    let wrong = server.sandyard(&["create", "--secret", "KEY=nosuch"]);
    assert!(
        said(&wrong).contains("nosuch") && said(&wrong).contains("`sandyard secret ls`"),
        "{}",
        said(&wrong)
    );
}

#[test]
fn allowing_something_beside_all_the_rest_is_remarked() {
    let server = Server::start();
    let created = server.sandyard(&["create", "--name", "build", "--allow", "pypi.org"]);
    assert!(said(&created).contains("stays open"), "{}", said(&created));
    let set = |flags: &[&str]| {
        let output = server.sandyard(&[&["network", "set", "build"], flags].concat());
        assert!(output.status.success(), "{}", said(&output));
        said(&output).contains("stays open")
    };
    assert!(set(&["--allow", "pypi.org"]));
    assert!(!set(&["--allow", "pypi.org", "--no-internet"]));
    assert!(!set(&["--allow", "pypi.org", "--deny", "*"]));
    assert!(!set(&["--allow", "pypi.org", "--internet"]));
    assert!(!set(&["--deny", "*:25"]));
}

#[test]
fn a_secret_comes_from_anywhere_but_the_command_line() {
    let server = Server::start();
    let set = ["secret", "set", "key", "--host", "api.example.com"];
    let from = |source: &'static str| [&set[..], &["--value-from", source]].concat();
    let by_variable = server
        .command(&from("env:TOKEN"))
        .env("TOKEN", "s3cret")
        .output();
    assert_eq!(by_variable.expect("run the program").stdout, b"key\n");
    for words in [from("-"), set.to_vec()] {
        let mut child = server
            .command(&words)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("start the program");
        let mut input = child.stdin.take().expect("a pipe");
        input.write_all(b"s3cret\n").expect("write");
        drop(input);
        assert!(child.wait().expect("an end").success(), "{words:?}");
    }
    let none = server.sandyard(&set);
    assert_eq!(none.status.code(), Some(125));
    assert!(said(&none).contains("no value"), "{}", said(&none));

    let listed = server.json(&["secret", "list", "--json"]);
    assert_eq!(listed[0]["hosts"], json!(["api.example.com"]));
    assert!(!listed.to_string().contains("s3cret"));
    let placeholder = listed[0]["placeholder"].as_str().expect("a placeholder");
    let id = server.out(&["create", "--secret", "TOKEN=key"]);
    let inside = server.out(&["exec", &id, "--", "sh", "-c", "echo $TOKEN"]);
    assert_eq!(inside, placeholder);
    assert_eq!(
        server.json(&["info", &id, "--json"])["secrets"],
        json!({"TOKEN": "key"})
    );
    assert_eq!(server.out(&["secret", "delete", "key"]), "key");
    assert_eq!(server.out(&["secret", "ls", "--json"]), "[]");
    let gone = server.sandyard(&["secret", "rm", "key"]);
    assert_eq!(gone.status.code(), Some(125));
}
