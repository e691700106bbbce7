//! Containers of a real Docker daemon: privileges that the operator can allow or forbid.

use sandyard_provider::prelude::*;
use sandyard_providers::docker::{Docker, DockerConfig};
use serde_json::json;

use crate::agent_client;
use crate::docker::{make, sh};
use crate::fake_dockerd::Dockerd;

/// The output of a shell line as root in a container.
async fn as_root(provider: &Docker, id: &str, line: &str) -> String {
    let agent = agent_client::agent(provider, id).await;
    agent_client::printed(&agent.as_user("root"), line).await
}

#[tokio::test]
async fn programs_gain_privileges_only_if_the_operator_allows_it() {
    let dockerd = Dockerd::start(true).await;
    for has_new_privileges in [true, false] {
        let config = DockerConfig {
            has_new_privileges,
            ..dockerd.config("ours")
        };
        let provider = Docker::connect(config).await.expect("connect");
        let id = make(&provider, "one").await.id;
        let line = "echo 'user ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/user; id -u";
        assert_eq!(as_root(&provider, &id, line).await, "0");
        let line = "sudo -n id -u 2>/dev/null || echo no";
        let output = sh(&provider, &id, line).await;
        let expected = if has_new_privileges { "0" } else { "no" };
        assert_eq!(output, expected, "has_new_privileges: {has_new_privileges}");
        provider.delete(&id).await.expect("delete");
    }
    assert_eq!(dockerd.leftovers(), Vec::<String>::new());
}

#[tokio::test]
async fn the_operators_seccomp_profile_is_applied() {
    let dockerd = Dockerd::start(true).await;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("filter.json");
    let filter = json!({
        "defaultAction": "SCMP_ACT_ALLOW",
        "syscalls": [{"names": ["mknod", "mknodat"], "action": "SCMP_ACT_ERRNO"}],
    });
    std::fs::write(&path, filter.to_string()).expect("a file");
    let config = DockerConfig {
        seccomp: Some(path),
        ..dockerd.config("ours")
    };
    let plain = dockerd.provider("ours").await;
    let filtered = Docker::connect(config).await.expect("connect");
    for (provider, expected) in [(&plain, "made"), (&filtered, "refused")] {
        let id = make(provider, "one").await.id;
        let line = "mkfifo /tmp/pipe 2>/dev/null && echo made || echo refused";
        assert_eq!(sh(provider, &id, line).await, expected);
        provider.delete(&id).await.expect("delete");
    }
    assert_eq!(dockerd.leftovers(), Vec::<String>::new());
}
