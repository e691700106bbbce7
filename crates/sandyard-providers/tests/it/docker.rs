//! Containers of a real Docker daemon as a provider.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sandyard_agent_client::AgentClient;
use sandyard_core::Limits;
use sandyard_core::SandboxState::{Running, Stopped};
use sandyard_provider::ProviderErrorKind::{Invalid, NotFound, TimedOut, Unavailable};
use sandyard_provider::conformance::{self, Options};
use sandyard_provider::prelude::*;
use sandyard_provider::{AgentAddress, Instance};
use sandyard_providers::CallTimeouts;
use sandyard_providers::docker::{Docker, DockerConfig, DockerNetwork, Workspace};

use crate::agent_client;
use crate::env::spec;
use crate::fake_dockerd::{Dockerd, IMAGE};

const TIMEOUT: Duration = Duration::from_secs(180);

pub(crate) async fn sh(provider: &Docker, id: &str, line: &str) -> String {
    all_output(&agent_client::agent(provider, id).await, line).await
}

/// All output of a shell line, standard error included.
async fn all_output(agent: &AgentClient, line: &str) -> String {
    let output = agent_client::run(agent, line)
        .await
        .expect("run a shell line");
    agent_client::text(&[output.stdout, output.stderr].concat())
}

pub(crate) async fn make(provider: &Docker, sandbox_id: &str) -> Instance {
    let made = provider.create(&spec(provider, sandbox_id)).await;
    made.expect("create")
}

#[tokio::test]
async fn docker_passes_the_conformance_suite() {
    let dockerd = Dockerd::start(true).await;
    let other = dockerd.provider("another").await;
    let foreign = make(&other, "theirs").await.id;
    let plain = dockerd.docker(&["create", "--network=none", IMAGE, "sleep", "1"]);
    let options = Options {
        foreign_instances: vec![foreign, plain],
        ..Options::default()
    };
    let before = dockerd.leftovers();
    let provider = Arc::new(dockerd.provider("ours").await);
    let report = conformance::run(provider.clone(), &options).await;
    report.assert();
    assert_eq!(report.passed(), report.0.len(), "\n{report}");
    assert_eq!(
        dockerd.leftovers(),
        before,
        "foreign containers are untouched, and nothing else remains"
    );
}

#[tokio::test]
async fn a_container_has_the_requested_limits_and_no_privileges() {
    let dockerd = Dockerd::start(true).await;
    let provider = dockerd.provider("ours").await;
    let mut spec = spec(&provider, "one");
    spec.limits = Limits {
        memory_bytes: 300 << 20,
        cpu_millis: 500,
        pids: 200,
        ..Limits::default()
    };
    spec.env
        .insert("KEY".to_owned(), "a-value-nobody-may-see".to_owned());
    spec.access_token = "a-token-nobody-may-see".to_owned();
    let made = provider.create(&spec).await.expect("create");
    assert_eq!(made.limits, spec.limits);
    let all = dockerd.inspect(&made.id);
    let host = &all["HostConfig"];
    assert_eq!(host["Memory"], 300 << 20);
    assert_eq!(host["MemorySwap"], 300 << 20);
    assert_eq!(host["NanoCpus"], 500_000_000);
    assert!(
        host["PidsLimit"]
            .as_u64()
            .is_some_and(|pids| (200..=264).contains(&pids))
    );
    assert_eq!(host["NetworkMode"], "none");
    assert_eq!(host["Privileged"], false);
    assert_eq!(host["CapDrop"], serde_json::json!(["ALL"]));
    assert_eq!(
        host["SecurityOpt"],
        serde_json::json!(["no-new-privileges:true"])
    );
    assert_eq!(host["LogConfig"]["Type"], "none");
    assert_eq!(all["Config"]["Labels"]["sandyard.sandbox"], "one");
    let text = all.to_string();
    for secret in ["a-value-nobody-may-see", "a-token-nobody-may-see"] {
        assert!(!text.contains(secret), "{text}");
    }
    let debug = format!("{provider:?} {:?}", dockerd.config("ours"));
    assert!(
        !debug.contains("sealing") && !debug.contains("7, 7"),
        "{debug}"
    );
    let address = AgentAddress {
        id: made.id.clone(),
        access_token: spec.access_token.clone(),
    };
    let agent = provider.agent(&address).await.expect("agent");
    let printed_text = all_output(
        &agent,
        "id -un; echo $KEY; touch /workspace/file && echo written",
    )
    .await;
    assert_eq!(printed_text, "user\na-value-nobody-may-see\nwritten");
    let printed_text = all_output(
        &agent,
        "grep -E 'CapEff|NoNewPrivs|Seccomp:' /proc/self/status",
    )
    .await;
    assert!(
        printed_text.contains("CapEff:\t0000000000000000"),
        "{printed_text}"
    );
    assert!(
        printed_text.contains("NoNewPrivs:\t1") && printed_text.contains("Seccomp:\t2"),
        "{printed_text}"
    );
    provider.delete(&made.id).await.expect("delete");
    assert_eq!(dockerd.leftovers(), Vec::<String>::new());
}

#[tokio::test]
async fn another_server_of_the_installation_uses_its_containers() {
    let dockerd = Dockerd::start(true).await;
    let first = dockerd.provider("ours").await;
    let made = make(&first, "one").await;
    let paused = make(&first, "two").await.id;
    let line = "echo here > ~/file; (sleep 1000 &) ; until pgrep -x sleep; do :; done";
    sh(&first, &made.id, line).await;
    first.pause(&paused).await.expect("pause");
    drop(first);
    let second = dockerd.provider("ours").await;
    let instances = second.list().await.expect("list");
    assert_eq!(instances.len(), 2);
    assert!(instances.contains(&made), "{instances:?}");
    assert_eq!(
        sh(&second, &made.id, "cat ~/file; pgrep -c sleep").await,
        "here\n1"
    );
    second.resume(&paused).await.expect("resume");
    assert_eq!(sh(&second, &paused, "echo thawed").await, "thawed");
    // Not without the key: then it cannot decrypt the agent's settings.
    let other_key = DockerConfig {
        sealing_key: [8; 32],
        ..dockerd.config("ours")
    };
    let third = Docker::connect(other_key).await.expect("connect");
    let agent = agent_client::agent(&third, &made.id).await;
    agent.health().await.expect_err("it has another key");
    for id in [&made.id, &paused] {
        second.delete(id).await.expect("delete");
    }
    assert_eq!(dockerd.leftovers(), Vec::<String>::new());
}

#[tokio::test]
async fn a_killed_daemon_loses_nothing_that_was_reported() {
    let mut dockerd = Dockerd::start(false).await;
    let provider = dockerd.provider("ours").await;
    let made = make(&provider, "one").await;
    let request = make(&provider, "two").await.id;
    sh(&provider, &made.id, "echo kept > ~/file").await;
    provider.stop(&request).await.expect("stop");
    dockerd.kill();
    let refused = provider.inspect(&made.id).await.expect_err("nobody there");
    assert_eq!(refused.kind, Unavailable, "{refused}");
    assert!(refused.hint.is_some());
    provider.check_health().await.expect_err("nobody there");
    dockerd.revive();
    provider.check_health().await.expect("it is back");
    let now = provider.inspect(&made.id).await.expect("inspect");
    let now = now.expect("it is there");
    assert_eq!(now.state, Stopped);
    assert!(now.reason.is_some(), "nobody asked it to stop");
    let other = provider.inspect(&request).await.expect("inspect");
    assert_eq!(other.expect("it is there").reason, None, "it was asked to");
    let started = provider.start(&made.id).await.expect("start");
    assert_eq!(started.state, Running);
    assert_eq!(started.reason, None);
    assert_eq!(sh(&provider, &made.id, "cat ~/file").await, "kept");
    for id in [&made.id, &request] {
        provider.delete(id).await.expect("delete");
    }
    assert_eq!(dockerd.leftovers(), Vec::<String>::new());
}

#[tokio::test]
async fn containers_outlive_a_daemon_that_can_restore_them() {
    let mut dockerd = Dockerd::start(true).await;
    let provider = dockerd.provider("ours").await;
    let made = make(&provider, "one").await;
    let line = "(sleep 1000 &) ; until pgrep -x sleep; do :; done";
    sh(&provider, &made.id, line).await;
    dockerd.crash();
    let now = provider.inspect(&made.id).await.expect("inspect");
    assert_eq!(now.expect("it is there").state, Running);
    // The link broke with the daemon; the next one is opened on demand.
    let give_up = Instant::now() + TIMEOUT;
    let agent = agent_client::agent(&provider, &made.id).await;
    while agent.health().await.is_err() {
        assert!(Instant::now() < give_up, "the agent is not reached again");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(all_output(&agent, "pgrep -c sleep").await, "1");
    provider.delete(&made.id).await.expect("delete");
    assert_eq!(dockerd.leftovers(), Vec::<String>::new());
}

#[tokio::test]
async fn a_hanging_daemon_does_not_delay_another() {
    let frozen = Dockerd::start(true).await;
    let well = Dockerd::start(true).await;
    // Short enough to wait for, long enough for everything before and after on a busy machine.
    let short = CallTimeouts {
        quick: Duration::from_secs(20),
        create: Duration::from_secs(20),
        ..CallTimeouts::default()
    };
    let config = DockerConfig {
        timeouts: short,
        ..frozen.config("ours")
    };
    let stuck = Docker::connect(config).await.expect("connect");
    let other = well.provider("ours").await;
    let made = make(&other, "one").await.id;
    frozen.freeze(true);
    let (instances, created, printed_text) = tokio::join!(
        stuck.list(),
        async { stuck.create(&spec(&stuck, "two")).await },
        sh(&other, &made, "echo well"),
    );
    assert_eq!(instances.expect_err("it hangs").kind, TimedOut);
    assert_eq!(created.expect_err("it hangs").kind, TimedOut);
    assert_eq!(printed_text, "well");
    frozen.freeze(false);
    let give_up = Instant::now() + TIMEOUT;
    while stuck.check_health().await.is_err() {
        assert!(Instant::now() < give_up, "it does not come back");
    }
    // A container that the abandoned call created nevertheless is removed.
    while !frozen.leftovers().is_empty() {
        assert!(Instant::now() < give_up, "{:?} is left", frozen.leftovers());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn snapshots_and_forks_contain_the_workspace_and_leave_nothing() {
    let dockerd = Dockerd::start(true).await;
    let provider = dockerd.provider("ours").await;
    let made = make(&provider, "one").await.id;
    let line = "mkdir /workspace/dir; echo far > /workspace/dir/file; echo near > ~/file; id -u";
    assert_eq!(sh(&provider, &made, line).await, "1000");
    let fork = provider.fork(&made, &spec(&provider, "two")).await;
    let fork = fork.expect("fork").id;
    let line =
        "cat /workspace/dir/file ~/file; echo own > /workspace/dir/file; stat -c %U /workspace/dir";
    assert_eq!(sh(&provider, &fork, line).await, "far\nnear\nuser");
    assert_eq!(sh(&provider, &made, "cat /workspace/dir/file").await, "far");
    let second_fork = provider.fork(&fork, &spec(&provider, "three")).await;
    let second_fork = second_fork.expect("fork of a fork").id;
    assert_eq!(
        sh(&provider, &second_fork, "cat /workspace/dir/file").await,
        "own"
    );
    provider.snapshot(&made, "kept").await.expect("snapshot");
    for id in [&made, &fork, &second_fork] {
        provider.delete(id).await.expect("delete");
    }
    let mut from = spec(&provider, "four");
    from.template = "kept".to_owned();
    let last = provider.create(&from).await.expect("create").id;
    assert_eq!(
        sh(&provider, &last, "cat /workspace/dir/file ~/file").await,
        "far\nnear"
    );
    // Its token is not in the template.
    let image = dockerd.inspect("sandyard/kept:latest");
    assert_eq!(image["Config"]["Labels"]["sandyard.private"], "");
    provider.remove_template("kept").await.expect("remove");
    provider.delete(&last).await.expect("delete");
    assert_eq!(dockerd.leftovers(), Vec::<String>::new());
}

#[tokio::test]
async fn projects_are_folders_of_the_host_and_are_retained() {
    let dockerd = Dockerd::start(true).await;
    let projects = tempfile::tempdir_in("/var/tmp").expect("a folder");
    std::fs::create_dir(projects.path().join("shop")).expect("a folder");
    let config = DockerConfig {
        projects: Some(projects.path().to_owned()),
        workspace: Workspace::Layer,
        user: Some("root".to_owned()),
        ..dockerd.config("ours")
    };
    let provider = Docker::connect(config).await.expect("connect");
    let mut new_spec = spec(&provider, "one");
    new_spec.project = Some("shop".to_owned());
    let made = provider.create(&new_spec).await.expect("create").id;
    assert_eq!(
        sh(&provider, &made, "id -u; echo 1 > /workspace/file").await,
        "0"
    );
    provider.delete(&made).await.expect("delete");
    let file = std::fs::read_to_string(projects.path().join("shop/file"));
    assert_eq!(file.expect("it stays"), "1\n");
    for invalid in ["", ".", "..", ".ssh", "a/b", "../etc", "a\0b"] {
        new_spec.project = Some(invalid.to_owned());
        let refused = provider.create(&new_spec).await.expect_err("odd");
        assert_eq!(refused.kind, Invalid, "{invalid:?}");
    }
    new_spec.project = Some("missing".to_owned());
    let refused = provider.create(&new_spec).await.expect_err("no folder");
    let folder_path = projects.path().to_str().expect("text");
    assert_eq!(refused.kind, Invalid);
    assert!(!refused.message.contains(folder_path), "{refused}");
    assert_eq!(dockerd.leftovers(), Vec::<String>::new());
}

#[tokio::test]
async fn missing_features_of_the_daemon_are_reported_at_once() {
    let dockerd = Dockerd::start(true).await;
    let config = DockerConfig {
        runtime: Some("none-of-that-name".to_owned()),
        ..dockerd.config("ours")
    };
    let refused = Docker::connect(config).await.expect_err("no such runtime");
    assert_eq!(refused.kind, NotFound);
    assert!(refused.hint.expect("a hint").contains("`runc`"));
    let config = DockerConfig {
        host: Some("unix:///nowhere/docker.sock".to_owned()),
        ..dockerd.config("ours")
    };
    let refused = Docker::connect(config).await.expect_err("nobody there");
    assert_eq!(refused.kind, Unavailable, "{refused}");
    for host in ["invalid", "ssh://user@host"] {
        let config = DockerConfig {
            host: Some(host.to_owned()),
            ..dockerd.config("ours")
        };
        let refused = Docker::connect(config).await.expect_err(host);
        assert_eq!(refused.kind, Invalid, "{host}");
    }
    for network in ["host", "container:x"] {
        let config = DockerConfig {
            network: DockerNetwork::Existing(network.to_owned()),
            ..dockerd.config("ours")
        };
        let refused = Docker::connect(config).await.expect_err("no network");
        assert_eq!(refused.kind, Invalid, "{network}");
    }
}
