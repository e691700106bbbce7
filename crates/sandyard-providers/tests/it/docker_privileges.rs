//! Containers of a real Docker daemon: what the operator may allow or forbid what runs in them.

use sandyard_provider::prelude::*;
use sandyard_providers::docker::{Docker, DockerConfig};
use serde_json::json;

use crate::agent_client;
use crate::docker::{make, sh};
use crate::fake_dockerd::Dockerd;

/// What root prints in a container.
async fn as_root(provider: &Docker, id: &str, line: &str) -> String {
    let agent = agent_client::agent(provider, id).await;
    agent_client::printed(&agent.as_user("root"), line).await
}

#[tokio::test]
async fn programs_gain_rights_by_being_run_only_where_the_operator_says_so() {
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
        let said = sh(&provider, &id, line).await;
        let expected = if has_new_privileges { "0" } else { "no" };
        assert_eq!(said, expected, "has_new_privileges: {has_new_privileges}");
        provider.delete(&id).await.expect("delete");
    }
    assert_eq!(dockerd.left(), Vec::<String>::new());
}

#[tokio::test]
async fn the_operators_own_filter_of_system_calls_holds() {
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
    assert_eq!(dockerd.left(), Vec::<String>::new());
}
