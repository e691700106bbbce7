//! What is in the database of a server that keeps secrets.

use std::path::Path;

use sandyard_service::{CreateRequest, ForkRequest};
use serde_json::json;

use crate::harness::{TestEnv, alice, key_settings, policy};
use crate::secrets::{secret, using};

/// Everything in a folder, file by file.
fn bytes_of(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    entries
        .map(|entry| {
            let path = entry.expect("a file").path();
            (
                path.display().to_string(),
                std::fs::read(path).expect("a file"),
            )
        })
        .collect()
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|part| part == text.as_bytes())
}

#[tokio::test]
async fn nothing_secret_is_in_clear_in_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let env = TestEnv::in_file(&folder.path().join("store.db"), key_settings()).await;
    let service = &env.service;
    let (value, changed, header) = ("Zq7-first-value", "Zq7-second-value", "Zq7-of-a-header");
    service
        .put_secret(&alice(), secret("token", value))
        .await
        .unwrap();
    let network = policy(json!({
        "rules": {"api.example.com": [{"transform": {"headers": {"X-Token": header}}}]},
    }));
    let sandbox = env
        .make(CreateRequest {
            network: Some(network.clone()),
            idempotency_key: Some("a-key-of-a-client".to_owned()),
            ..using(&[("TOKEN", "token")])
        })
        .await;
    let name = sandbox.id.as_str();
    service.set_network(&alice(), name, network).await.unwrap();
    service
        .fork(&alice(), name, ForkRequest::default())
        .await
        .unwrap();
    service
        .put_secret(&alice(), secret("token", changed))
        .await
        .unwrap();
    assert_eq!(env.grant(&sandbox).await.secrets[0].value.expose(), changed);
    service.flush().await;
    let files = bytes_of(folder.path());
    // The bytes are there to be found: in the file itself or in what is not yet merged into it.
    let is_there = |text: &str| files.iter().any(|(_, bytes)| holds(bytes, text));
    assert!(is_there("sandyard-secret-token") && is_there("network_changed"));
    for secret in [value, changed, header, "Zq7"] {
        for (path, bytes) in &files {
            assert!(!holds(bytes, secret), "{secret} is in {path}");
        }
    }
}
