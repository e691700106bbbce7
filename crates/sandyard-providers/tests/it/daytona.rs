//! Daytona: a substitute that the official SDK drives through the same calls. Needs root.

use std::sync::Arc;

use sandyard_agent_client::{AgentClient, ClientError, Endpoint};
use sandyard_provider::conformance::{self, Options, Outcome};
use sandyard_provider::prelude::*;
use sandyard_provider::{InstanceSpec, ProviderErrorKind};
use sandyard_providers::{Daytona, DaytonaConfig};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::agent_client::{agent, run, text};
use crate::daytona_fake_api::{FakeApi, KEY};
use crate::env;

/// Checks that Daytona cannot pass; it does not claim these capabilities.
const SKIPPED: [&str; 15] = [
    "limits_out_of_range_are_invalid",
    "the_history_has_a_point_soon_after_a_create",
    "a_pause_leaves_earlier_points_unchanged",
    "a_missing_instance_has_no_history",
    "a_fork_is_an_instance_of_its_own",
    "a_new_instance_has_no_differences",
    "an_archive_becomes_a_template",
    "an_invalid_archive_or_name_is_refused",
    "a_fork_has_the_files_and_the_difference_lists_them",
    "a_missing_volume_is_not_found",
    "bad_mounts_and_volumes_are_invalid",
    "a_volume_is_deleted_when_no_instance_mounts_it",
    "a_volume_is_shared_and_outlives_its_instances",
    "stops_and_forks_keep_a_volume",
    "files_are_accessible_without_instances",
];

/// Checks of virtual machines only.
const OF_MACHINES: [&str; 6] = [
    "pausing_and_resuming_can_be_repeated",
    "calls_in_the_wrong_state_are_conflicts",
    "every_state_can_be_deleted",
    "reads_find_an_instance_while_it_is_paused_and_resumed",
    "egress_can_be_changed_across_a_pause",
    "a_command_goes_on_after_a_pause",
];

/// The spec of an instance: its snapshot decides the limits.
pub(crate) fn spec(provider: &dyn Provider, sandbox_id: &str) -> InstanceSpec {
    InstanceSpec {
        limits: provider.info().default_limits.clone(),
        ..env::spec(provider, sandbox_id)
    }
}

/// The output of a shell line.
pub(crate) async fn sh(agent: &AgentClient, line: &str) -> Result<String, ClientError> {
    Ok(text(&run(agent, line).await?.stdout))
}

/// Sandboxes of others with the same account: created by hand, and by an installation of another name.
async fn create_foreign_instances(counterpart: &FakeApi) -> Vec<String> {
    let bare = counterpart.ask("POST", "/sandbox", json!({})).await;
    let labels = json!({"labels": {"sandyard.installation": "another", "sandyard.sandbox": "x"}});
    let others = counterpart.ask("POST", "/sandbox", labels).await;
    [bare, others]
        .map(|made| made["id"].as_str().expect("an id").to_owned())
        .to_vec()
}

/// Creates a sandbox with `kept` in a file of its home directory.
pub(crate) async fn create_with_file(provider: &dyn Provider) -> String {
    let made = provider.create(&spec(provider, "one")).await;
    let id = made.expect("create").id;
    let output = sh(&agent(provider, &id).await, "echo kept > ~/file").await;
    output.expect("a command");
    id
}

/// Waits until the API reports a state of a sandbox.
pub(crate) async fn until(counterpart: &FakeApi, id: &str, state: &str) {
    let inspection = async {
        loop {
            let path = format!("/sandbox/{id}");
            let reported = counterpart.ask("GET", &path, Value::Null).await;
            if reported["state"] == state {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let waited = tokio::time::timeout(std::time::Duration::from_secs(120), inspection).await;
    waited.unwrap_or_else(|_| panic!("`{id}` does not become {state}"));
}

async fn conforms(change: impl Fn(&mut DaytonaConfig), are_vms: bool) {
    let counterpart = FakeApi::start().await;
    let mut config = counterpart.config("mine");
    change(&mut config);
    let provider = Arc::new(Daytona::connect(config).await.expect("connect"));
    let create_foreign_instances = create_foreign_instances(&counterpart).await;
    let options = Options {
        limits: provider.info().default_limits.clone(),
        foreign_instances: create_foreign_instances.clone(),
        ..Options::default()
    };
    let report = conformance::run(provider.clone(), &options).await;
    report.assert();
    for (name, outcome) in &report.0 {
        let is_skipped = *outcome == Outcome::Skipped;
        let is_beyond = SKIPPED.contains(name) || (!are_vms && OF_MACHINES.contains(name));
        assert_eq!(is_skipped, is_beyond, "{name}\n{report}");
    }
    for id in create_foreign_instances {
        provider
            .delete(&id)
            .await
            .expect("not an instance of this installation");
        let stopped = provider
            .stop(&id)
            .await
            .expect_err("another installation's");
        assert_eq!(stopped.kind, ProviderErrorKind::NotFound);
        until(&counterpart, &id, "started").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conformance() {
    conforms(|_| (), false).await;
}

/// Sandboxes of virtual machine snapshots can be paused with their memory.
#[tokio::test(flavor = "multi_thread")]
async fn conformance_of_virtual_machines() {
    let is_a_machine = |config: &mut DaytonaConfig| {
        config.snapshot = Some("daytona-vm-small".to_owned());
    };
    conforms(is_a_machine, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_location_is_reported_and_the_key_is_hidden() {
    let counterpart = FakeApi::start().await;
    let mut config = counterpart.config("mine");
    assert!(!format!("{config:?}").contains(KEY));
    let host = config
        .server_url
        .trim_start_matches("http://")
        .trim_end_matches("/api");
    let host = host.to_owned();
    config.target = Some("us".to_owned());
    let provider = Daytona::connect(config.clone()).await.expect("connect");
    assert_eq!(provider.info().location, format!("daytona:{host}/us"));
    assert!(!format!("{provider:?}").contains(KEY));

    config.api_key = "dtn_wrong_key".to_owned();
    let error = match Daytona::connect(config).await {
        Ok(wrong) => wrong.check_health().await.expect_err("a wrong key"),
        Err(error) => error,
    };
    assert_eq!(error.kind, ProviderErrorKind::Unavailable);
    assert!(!format!("{error:?}").contains("dtn_wrong_key"), "{error:?}");
    let hint = error.hint.expect("a hint");
    assert!(hint.contains("DAYTONA_API_KEY"), "{hint}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_found_after_its_sandbox_was_restarted_elsewhere() {
    let counterpart = FakeApi::start().await;
    let provider = counterpart.provider("mine").await;
    let id = provider
        .create(&spec(&provider, "one"))
        .await
        .expect("create")
        .id;
    let old = agent(&provider, &id).await;
    assert_eq!(
        sh(&old, "echo kept > ~/file; id -un")
            .await
            .expect("a command"),
        "daytona"
    );

    for (verb, state) in [("stop", "stopped"), ("start", "started")] {
        let path = format!("/sandbox/{id}/{verb}");
        counterpart.ask("POST", &path, Value::Null).await;
        until(&counterpart, &id, state).await;
    }
    // A later server knows nothing about the links and agents of the first.
    let later = counterpart.provider("mine").await;
    let new = agent(&later, &id).await;
    assert_eq!(sh(&new, "cat ~/file").await.expect("a command"), "kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_agent_is_started_again() {
    let counterpart = FakeApi::start().await;
    let provider = counterpart.provider("mine").await;
    let id = provider
        .create(&spec(&provider, "one"))
        .await
        .expect("create")
        .id;
    let first = agent(&provider, &id).await;
    // The agent's parent is the shell of the session; everything ends, and with it the answer.
    let _ = sh(&first, "pkill -KILL -f -- '--listen 0.0.0.0:9983'").await;
    let later = counterpart.provider("mine").await;
    let second = agent(&later, &id).await;
    assert_eq!(sh(&second, "echo here").await.expect("a command"), "here");
}

#[tokio::test(flavor = "multi_thread")]
async fn ports_are_reached_without_the_agent() {
    let counterpart = FakeApi::start().await;
    let provider = counterpart.provider("mine").await;
    let id = provider
        .create(&spec(&provider, "one"))
        .await
        .expect("create")
        .id;
    let agent = agent(&provider, &id).await;
    let line = "cd /tmp && echo hello > page && (setsid python3 -m http.server 8123 >/dev/null 2>&1 &) ; \
                until python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 8123))' 2>/dev/null; do :; done";
    sh(&agent, line).await.expect("a server");
    let Endpoint::Custom(dialler) = agent.endpoint() else {
        panic!("a custom dialler");
    };
    assert!(!dialler.is_host_connection());
    // Its links also lead to ports of Daytona itself, which are not for visitors of a preview.
    for own in [2280, 22220, 22222, 9983] {
        let refused = dialler.dial_port(own).expect("a dialler").await;
        let refused = refused.expect_err("closed").kind();
        assert_eq!(refused, std::io::ErrorKind::ConnectionRefused, "{own}");
    }
    let mut port = dialler
        .dial_port(8123)
        .expect("a dialler")
        .await
        .expect("a connection");
    let mut request = "GET /page HTTP/1.1\r\nConnection: close\r\n".to_owned();
    for (name, value) in &port.headers {
        request += &format!("{name}: {}\r\n", value.to_str().expect("text"));
    }
    request += "\r\n";
    port.stream
        .write_all(request.as_bytes())
        .await
        .expect("asked");
    let mut answer = String::new();
    port.stream
        .read_to_string(&mut answer)
        .await
        .expect("an answer");
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with("hello\n"),
        "{answer}"
    );
}
