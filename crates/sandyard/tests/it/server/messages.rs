//! Messages that say what to do.

use super::{Server, clean, stderr_of};

#[test]
fn the_right_scheme_is_named() {
    let plain = Server::start();
    let sealed = Server::start_with(&["--tls-self-signed"]);
    for (server, right) in [(&plain, "http://"), (&sealed, "https://")] {
        let rest = server
            .url()
            .trim_start_matches("https://")
            .trim_start_matches("http://");
        let wrong = if right == "http://" {
            "https://"
        } else {
            "http://"
        };
        let refused = server.sandyard(&["--url", &format!("{wrong}{rest}"), "ls"]);
        let stderr = stderr_of(&refused);
        assert!(
            stderr.contains(&format!("hint: use {right}{rest}")),
            "{stderr}"
        );
    }
}

#[test]
fn a_missing_key_is_explained() {
    let server = Server::start_with(&["--auth", "required"]);
    // A name of this host that is not known to be loopback.
    let url = server.url().replace("127.0.0.1", "yard.localhost");
    let refused = server.sandyard(&["--url", &url, "ls"]);
    let stderr = stderr_of(&refused);
    assert!(
        stderr.contains("admin.key") && stderr.contains("loopback"),
        "{stderr}"
    );
}

#[test]
fn errors_name_options_and_shells() {
    let server = Server::start();
    let refused = stderr_of(&server.sandyard(&["create", "--name", "My Box!"]));
    assert!(refused.contains("`--name` must have"), "{refused}");
    let id = server.out(&["create"]);
    let refused = stderr_of(&server.sandyard(&["exec", &id, "echo hi | tr a-z A-Z"]));
    assert!(
        refused.contains("-- sh -c 'echo hi | tr a-z A-Z'"),
        "{refused}"
    );
    let noted = stderr_of(&server.sandyard(&["network", "allow", &id, "10.0.0.1", "pypi.org"]));
    assert!(
        noted.contains("`10.0.0.1` is a private address") && !noted.contains("`pypi"),
        "{noted}"
    );
}

#[test]
fn a_second_server_on_the_port_is_recognised() {
    let server = Server::start();
    let port = server.url().rsplit(':').next().expect("a port");
    let refused = clean(server.env())
        .args(["serve", "--port", port, "--data-dir"])
        .arg(server.env().path().join("other"))
        .output()
        .expect("run");
    let stderr = stderr_of(&refused);
    assert!(
        stderr.contains("a Sandyard server (0.") && stderr.contains("listens on 127.0.0.1:"),
        "{stderr}"
    );
}
