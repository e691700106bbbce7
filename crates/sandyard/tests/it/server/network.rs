//! `sandyard network` and `sandyard secret`.

use std::io::Write;
use std::process::Stdio;

use serde_json::json;

use super::{Server, stderr_of};

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
    let policy = server.out(&["network", "show", &id]);
    let lines: Vec<String> = policy
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

    // The output of `network show` can be applied to another sandbox.
    let shown_json = server.out(&["network", "show", &id, "--json"]);
    let file = server.env().path().join("policy.json");
    std::fs::write(&file, shown_json).expect("write");
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
    assert!(server.out(&["flows", &other]).starts_with("TIME"));
}

#[test]
fn invalid_options_are_reported_with_a_hint() {
    let server = Server::start();
    let id = server.out(&["create"]);
    let wrong = server.sandyard(&["network", "allow", &id, "https://pypi.org/"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        stderr_of(&wrong).contains("write `pypi.org`, without https://"),
        "{}",
        stderr_of(&wrong)
    );
    let wrong = server.sandyard(&["network", "set", &id]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        stderr_of(&wrong).contains("--no-internet"),
        "{}",
        stderr_of(&wrong)
    );
    let file = server.env().path().join("policy.json");
    std::fs::write(&file, r#"{"allow_out": ["pypi.org", "a b"]}"#).expect("write");
    let file = file.to_str().expect("a path");
    let wrong = server.sandyard(&["network", "set", &id, "--from", file]);
    assert_eq!(wrong.status.code(), Some(125));
    assert!(
        stderr_of(&wrong).contains("allow_out[1]"),
        "{}",
        stderr_of(&wrong)
    );
    let wrong = server.sandyard(&["create", "--secret", "KEY=nosuch"]);
    assert!(
        stderr_of(&wrong).contains("nosuch") && stderr_of(&wrong).contains("`sandyard secret ls`"),
        "{}",
        stderr_of(&wrong)
    );
}

#[test]
fn a_redundant_allow_list_is_reported() {
    let server = Server::start();
    let created = server.sandyard(&["create", "--name", "build", "--allow", "pypi.org"]);
    assert!(
        stderr_of(&created).contains("stays open"),
        "{}",
        stderr_of(&created)
    );
    let set = |flags: &[&str]| {
        let output = server.sandyard(&[&["network", "set", "build"], flags].concat());
        assert!(output.status.success(), "{}", stderr_of(&output));
        stderr_of(&output).contains("stays open")
    };
    assert!(set(&["--allow", "pypi.org"]));
    assert!(!set(&["--allow", "pypi.org", "--no-internet"]));
    assert!(!set(&["--allow", "pypi.org", "--deny", "*"]));
    assert!(!set(&["--allow", "pypi.org", "--internet"]));
    assert!(!set(&["--deny", "*:25"]));
}

#[test]
fn a_secret_value_comes_from_a_variable_or_standard_input() {
    let server = Server::start();
    let set = ["secret", "set", "key", "--host", "api.example.com"];
    let from = |source: &'static str| [&set[..], &["--value-from", source]].concat();
    let by_variable = server
        .command(&from("env:TOKEN"))
        .env("TOKEN", "s3cret")
        .output();
    assert_eq!(by_variable.expect("run the program").stdout, b"key\n");
    for arguments in [from("-"), set.to_vec()] {
        let mut child = server
            .command(&arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("start the program");
        let mut input = child.stdin.take().expect("a pipe");
        input.write_all(b"s3cret\n").expect("write");
        drop(input);
        assert!(child.wait().expect("an end").success(), "{arguments:?}");
    }
    let none = server.sandyard(&set);
    assert_eq!(none.status.code(), Some(125));
    assert!(
        stderr_of(&none).contains("no value"),
        "{}",
        stderr_of(&none)
    );

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
    let refused = server.sandyard(&["secret", "rm", "key"]);
    assert_eq!(refused.status.code(), Some(125));
}
