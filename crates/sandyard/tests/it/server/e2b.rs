//! `sandyard e2b env`: what programs written for E2B are told.

use std::process::Command;

use super::{Server, clean, said};
use crate::yard::Yard;

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
    assert!(output.status.success(), "{}", said(&output));
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
fn its_lines_lead_to_the_listener_of_the_running_server() {
    let server = Server::start();
    let lines = server.out(&["e2b", "env"]);
    assert!(
        lines.lines().all(|line| line.starts_with("export E2B_")),
        "{lines}"
    );
    let told = evaluated(&lines, &["E2B_API_KEY", "E2B_API_URL", "E2B_SANDBOX_URL"]);
    assert_eq!(told[0], server.admin_key());
    assert_eq!(told[1], told[2]);
    assert_ne!(told[1], server.url());
    // Nobody comes in there without a key, on loopback neither.
    let sandboxes = format!("{}/v2/sandboxes", told[1]);
    assert_eq!(status(&sandboxes, None), "401");
    assert_ne!(status(&sandboxes, Some(&told[0])), "401");
    let json = server.json(&["e2b", "env", "--json"]);
    assert_eq!(json["E2B_API_URL"], told[1].as_str());
    assert_eq!(json["E2B_API_KEY"], told[0].as_str());
}

#[test]
fn with_a_domain_and_tls_it_names_the_domain_and_what_to_trust() {
    let server = Server::start_with(&["--domain", "sbx.test", "--tls-self-signed"]);
    let port = server.url().rsplit(':').next().expect("a port");
    let certificate = server.yard().data().join("tls/ca.pem");
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
fn without_a_server_or_a_key_nothing_is_printed_but_what_to_do() {
    let yard = Yard::new();
    let alone = clean(&yard)
        .args(["--url", "http://127.0.0.1:1", "e2b", "env"])
        .output()
        .expect("run");
    assert_eq!(alone.status.code(), Some(125));
    assert!(alone.stdout.is_empty());
    assert!(said(&alone).contains("no server at"), "{}", said(&alone));
    // On an open server everything else works without one.
    let server = Server::start();
    let keyless = server.far(None, &["e2b", "env"]);
    assert_eq!(keyless.status.code(), Some(125));
    assert!(keyless.stdout.is_empty());
    assert!(
        said(&keyless).contains("sandyard key add"),
        "{}",
        said(&keyless)
    );
}

#[test]
fn without_a_listener_of_its_own_the_api_is_below_a_path() {
    let yard = Yard::new();
    std::fs::create_dir_all(yard.data()).expect("a folder");
    std::fs::write(
        yard.data().join("sandyard.toml"),
        "[e2b]\nenabled = false\n",
    )
    .expect("write");
    let server = Server::start_in(yard, &[]);
    let output = server.sandyard(&["e2b", "env"]);
    assert!(output.status.success(), "{}", said(&output));
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let told = evaluated(&lines, &["E2B_API_URL"]);
    assert_eq!(told, [format!("{}/e2b", server.url())]);
    assert!(said(&output).contains("e2b.port"), "{}", said(&output));
}
