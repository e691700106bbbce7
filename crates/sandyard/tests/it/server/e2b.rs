//! `sandyard e2b env`: variables for programs written for E2B.

use std::process::Command;

use super::{Server, clean, stderr_of};
use crate::test_env::TestEnv;

/// Evaluates the lines as a shell does and prints some variables, one a line; nothing for one that is not set.
fn evaluated(lines: &str, names: &[&str]) -> Vec<String> {
    let shown: Vec<String> = names
        .iter()
        .map(|name| format!("echo \"${{{name}-}}\""))
        .collect();
    let output = Command::new("sh")
        .args(["-euc", &format!("{lines}\n{}", shown.join("\n"))])
        .env("E2B_API_URL", "http://before")
        .output()
        .expect("a shell");
    assert!(output.status.success(), "{}", stderr_of(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().map(str::to_owned).collect()
}

fn status(url: &str, key: Option<&str>) -> String {
    let mut command = Command::new("curl");
    command.args(["-sS", "-o", "/dev/null", "-w", "%{http_code}", url]);
    if let Some(key) = key {
        command.args(["-H", &format!("X-API-Key: {key}")]);
    }
    let output = command.output().expect("curl");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_exported_urls_lead_to_the_e2b_listener() {
    let server = Server::start();
    let lines = server.out(&["e2b", "env"]);
    assert!(
        lines.lines().all(|line| line.starts_with("export E2B_")),
        "{lines}"
    );
    let exported = evaluated(&lines, &["E2B_API_KEY", "E2B_API_URL", "E2B_SANDBOX_URL"]);
    assert_eq!(exported[0], server.admin_key());
    assert_eq!(exported[1], exported[2]);
    assert_ne!(exported[1], server.url());
    // The listener needs a key, also on loopback.
    let sandboxes = format!("{}/v2/sandboxes", exported[1]);
    assert_eq!(status(&sandboxes, None), "401");
    assert_ne!(status(&sandboxes, Some(&exported[0])), "401");
    let json = server.json(&["e2b", "env", "--json"]);
    assert_eq!(json["E2B_API_URL"], exported[1].as_str());
    assert_eq!(json["E2B_API_KEY"], exported[0].as_str());
}

#[test]
fn with_a_domain_and_tls_the_domain_and_certificate_are_exported() {
    let server = Server::start_with(&["--domain", "sbx.test", "--tls-self-signed"]);
    let port = server.url().rsplit(':').next().expect("a port");
    let certificate = server.env().data().join("tls/ca.pem");
    let certificate = certificate.to_str().expect("UTF-8");
    let lines = server.out(&["--ca-cert", certificate, "e2b", "env"]);
    let names = [
        "E2B_DOMAIN",
        "SSL_CERT_FILE",
        "NODE_EXTRA_CA_CERTS",
        "E2B_API_URL",
    ];
    assert_eq!(
        evaluated(&lines, &names),
        [&format!("sbx.test:{port}"), certificate, certificate, ""]
    );
}

#[test]
fn without_a_server_or_a_key_only_an_error_is_printed() {
    let env = TestEnv::new();
    let alone = clean(&env)
        .args(["--url", "http://127.0.0.1:1", "e2b", "env"])
        .output()
        .expect("run");
    assert_eq!(alone.status.code(), Some(125));
    assert!(alone.stdout.is_empty());
    assert!(
        stderr_of(&alone).contains("no server at"),
        "{}",
        stderr_of(&alone)
    );
    // On an open server, every other command works without a key.
    let server = Server::start();
    let keyless = server.as_remote(None, &["e2b", "env"]);
    assert_eq!(keyless.status.code(), Some(125));
    assert!(keyless.stdout.is_empty());
    assert!(
        stderr_of(&keyless).contains("sandyard key add"),
        "{}",
        stderr_of(&keyless)
    );
}

#[test]
fn without_an_e2b_listener_the_url_has_a_path() {
    let env = TestEnv::new();
    std::fs::create_dir_all(env.data()).expect("a folder");
    std::fs::write(env.data().join("sandyard.toml"), "[e2b]\nenabled = false\n").expect("write");
    let server = Server::start_in(env, &[]);
    let output = server.sandyard(&["e2b", "env"]);
    assert!(output.status.success(), "{}", stderr_of(&output));
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let exported = evaluated(&lines, &["E2B_API_URL"]);
    assert_eq!(exported, [format!("{}/e2b", server.url())]);
    assert!(
        stderr_of(&output).contains("e2b.port"),
        "{}",
        stderr_of(&output)
    );
}
