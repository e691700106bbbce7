//! A server somewhere else: an address and a key.

use super::{Server, stderr_of};

#[test]
fn a_server_with_authentication_needs_a_key() {
    let server = Server::start_with(&["--auth", "required"]);
    let refused = server.as_remote(None, &["ls"]);
    assert_eq!(refused.status.code(), Some(125));
    assert!(
        stderr_of(&refused).contains("hint: set SANDYARD_API_KEY"),
        "{}",
        stderr_of(&refused)
    );
    let wrong = format!("e2b_{}", "0".repeat(40));
    assert_eq!(
        server.as_remote(Some(&wrong), &["ls"]).status.code(),
        Some(125)
    );
    let key = server.admin_key();
    let made = server.as_remote(Some(&key), &["create"]);
    assert!(made.status.success(), "{}", stderr_of(&made));
    let id = String::from_utf8_lossy(&made.stdout).trim().to_owned();
    let ran = server.as_remote(Some(&key), &["exec", &id, "--", "echo", "far away"]);
    assert_eq!(ran.stdout, b"far away\n");
    // On the server's own host the client finds the key without being given it.
    assert!(server.out(&["ls"]).contains(&id));
}

#[test]
fn a_user_sees_its_own_sandboxes_within_the_scopes_of_its_key() {
    let server = Server::start_with(&["--auth", "required"]);
    let hers = server.out(&["create"]);
    server.out(&["user", "add", "bob", "--no-password"]);
    let reader = server.out(&["key", "add", "look", "--user", "bob", "--scope", "read"]);
    let maker = server.out(&["key", "add", "make", "--user", "bob", "--expires", "1h"]);
    let listed = server.as_remote(Some(&reader), &["ls", "--json"]);
    assert_eq!(String::from_utf8_lossy(&listed.stdout).trim(), "[]");
    let refused = server.as_remote(Some(&reader), &["create"]);
    assert!(
        stderr_of(&refused).contains("scope"),
        "{}",
        stderr_of(&refused)
    );
    let other = server.as_remote(Some(&maker), &["exec", &hers, "--", "true"]);
    assert!(
        stderr_of(&other).contains("no sandbox"),
        "{}",
        stderr_of(&other)
    );
    let made = server.as_remote(Some(&maker), &["create", "--name", "own"]);
    assert!(made.status.success(), "{}", stderr_of(&made));
    assert!(server.out(&["ls", "--user", "bob"]).contains("own"));
    assert!(server.out(&["audit"]).contains("bob"));
    let keys = server.json(&["key", "ls", "--json"]);
    let listed = keys.as_array().expect("a list").iter();
    let reader_key = listed
        .clone()
        .find(|key| key["name"] == "look")
        .expect("the key");
    server.out(&["key", "rm", reader_key["id"].as_str().expect("an id")]);
    assert_eq!(
        server.as_remote(Some(&reader), &["ls"]).status.code(),
        Some(125)
    );
    server.out(&["user", "disable", "bob"]);
    assert_eq!(
        server.as_remote(Some(&maker), &["ls"]).status.code(),
        Some(125)
    );
}

#[test]
fn localhost_needs_no_resolver() {
    let server = Server::start();
    let port = server.url().rsplit(':').next().expect("a port");
    let url = format!("http://localhost:{port}");
    let id = server.out(&["create"]);
    assert_eq!(
        server.out(&["--url", &url, "exec", &id, "--", "echo", "hi"]),
        "hi"
    );
}

#[test]
fn a_self_signed_certificate_is_trusted_with_ca_cert() {
    let server = Server::start_with(&["--tls-self-signed"]);
    assert!(server.url().starts_with("https://"), "{}", server.url());
    // With the data directory, the program finds the certificate itself.
    server.out(&["ls"]);
    let refused = server.as_remote(None, &["ls"]);
    assert_eq!(refused.status.code(), Some(125));
    assert!(
        stderr_of(&refused).contains("certificate"),
        "{}",
        stderr_of(&refused)
    );
    let certificate = server.env().data().join("tls/certificate.pem");
    let trusting = ["--ca-cert", certificate.to_str().expect("UTF-8")];
    let id = server.out(&[&trusting[..], &["create"]].concat());
    let ran = server.out(&[&trusting[..], &["exec", &id, "--", "echo", "sealed"]].concat());
    assert_eq!(ran, "sealed");
    server.out(&[&trusting[..], &["rm", &id]].concat());
}
