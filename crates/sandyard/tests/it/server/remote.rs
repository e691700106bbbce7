//! A server somewhere else: an address and a key.

use super::{Server, said};

#[test]
fn a_server_that_asks_for_a_key_is_used_with_one() {
    let server = Server::start_with(&["--auth", "required"]);
    let refused = server.far(None, &["ls"]);
    assert_eq!(refused.status.code(), Some(125));
    assert!(
        said(&refused).contains("hint: set SANDYARD_API_KEY"),
        "{}",
        said(&refused)
    );
    let wrong = format!("e2b_{}", "0".repeat(40));
    assert_eq!(server.far(Some(&wrong), &["ls"]).status.code(), Some(125));
    let key = server.admin_key();
    let made = server.far(Some(&key), &["create"]);
    assert!(made.status.success(), "{}", said(&made));
    let id = String::from_utf8_lossy(&made.stdout).trim().to_owned();
    let ran = server.far(Some(&key), &["exec", &id, "--", "echo", "far away"]);
    assert_eq!(ran.stdout, b"far away\n");
    // On the server's own host the key is found by itself.
    assert!(server.out(&["ls"]).contains(&id));
}

#[test]
fn a_user_has_only_what_is_its_own_and_only_what_its_key_may() {
    let server = Server::start_with(&["--auth", "required"]);
    let hers = server.out(&["create"]);
    server.out(&["user", "add", "bob", "--no-password"]);
    let reader = server.out(&["key", "add", "look", "--user", "bob", "--scope", "read"]);
    let maker = server.out(&["key", "add", "make", "--user", "bob", "--expires", "1h"]);
    let listed = server.far(Some(&reader), &["ls", "--json"]);
    assert_eq!(String::from_utf8_lossy(&listed.stdout).trim(), "[]");
    let refused = server.far(Some(&reader), &["create"]);
    assert!(said(&refused).contains("scope"), "{}", said(&refused));
    let other = server.far(Some(&maker), &["exec", &hers, "--", "true"]);
    assert!(said(&other).contains("no sandbox"), "{}", said(&other));
    let made = server.far(Some(&maker), &["create", "--name", "own"]);
    assert!(made.status.success(), "{}", said(&made));
    assert!(server.out(&["ls", "--user", "bob"]).contains("own"));
    assert!(server.out(&["audit"]).contains("bob"));
    let keys = server.json(&["key", "ls", "--json"]);
    let listed = keys.as_array().expect("a list").iter();
    let look = listed
        .clone()
        .find(|key| key["name"] == "look")
        .expect("the key");
    server.out(&["key", "rm", look["id"].as_str().expect("an id")]);
    assert_eq!(server.far(Some(&reader), &["ls"]).status.code(), Some(125));
    server.out(&["user", "disable", "bob"]);
    assert_eq!(server.far(Some(&maker), &["ls"]).status.code(), Some(125));
}

#[test]
fn localhost_is_an_address_without_asking_anybody() {
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
fn a_server_with_a_certificate_of_its_own_is_trusted_when_told() {
    let server = Server::start_with(&["--tls-self-signed"]);
    assert!(server.url().starts_with("https://"), "{}", server.url());
    let refused = server.sandyard(&["ls"]);
    assert_eq!(refused.status.code(), Some(125));
    assert!(said(&refused).contains("certificate"), "{}", said(&refused));
    let certificate = server.yard().data().join("tls/certificate.pem");
    let trusting = ["--ca-cert", certificate.to_str().expect("UTF-8")];
    let id = server.out(&[&trusting[..], &["create"]].concat());
    let ran = server.out(&[&trusting[..], &["exec", &id, "--", "echo", "sealed"]].concat());
    assert_eq!(ran, "sealed");
    server.out(&[&trusting[..], &["rm", &id]].concat());
}
