//! Daytona with faults: refused, rate limited, broken, silent, incomplete, killed. Needs root.

use std::time::Duration;

use sandyard_core::SandboxState;
use sandyard_provider::prelude::*;
use sandyard_provider::{Instance, ProviderErrorKind, Result};
use sandyard_providers::{CallTimeouts, Daytona};
use serde_json::json;

use crate::agent_client::agent;
use crate::daytona::{sh, spec};
use crate::daytona_fake_api::FakeApi;
use crate::faults::{Fault, Faults};

/// A provider with short timeouts, for requests without an answer: everything else has long ones, however busy the machine is.
async fn hasty(counterpart: &FakeApi, create: u64, quick: u64) -> Daytona {
    let mut config = counterpart.config("mine");
    config.timeouts = CallTimeouts {
        create: Duration::from_secs(create),
        quick: Duration::from_secs(quick),
        ..CallTimeouts::default()
    };
    Daytona::connect(config).await.expect("connect")
}

async fn create(provider: &Daytona, name: &str) -> Result<Instance> {
    provider.create(&spec(provider, name)).await
}

async fn ids(provider: &Daytona) -> Vec<String> {
    let all = provider.list().await.expect("list");
    all.into_iter().map(|one| one.id).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_without_an_answer_is_unavailable() {
    let mut counterpart = FakeApi::start().await;
    let provider = counterpart.provider("mine").await;
    counterpart.kill();
    let health = provider.check_health().await.expect_err("gone");
    assert_eq!(health.kind, ProviderErrorKind::Unavailable);
    let made = create(&provider, "one").await.expect_err("gone");
    assert_eq!(made.kind, ProviderErrorKind::Unavailable);
    let instances = provider.list().await.expect_err("gone");
    assert_eq!(instances.kind, ProviderErrorKind::Unavailable);
    let error = Daytona::connect(counterpart.config("mine")).await;
    assert_eq!(
        error.expect_err("gone").kind,
        ProviderErrorKind::Unavailable
    );
    counterpart.restart();
    provider.check_health().await.expect("back");
    assert_eq!(ids(&provider).await, Vec::<String>::new());
}

/// If Daytona has no default snapshot, the error names the setting.
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_default_snapshot_is_reported_with_its_setting() {
    let counterpart = FakeApi::start().await;
    let mut config = counterpart.config("mine");
    let address = config.server_url.trim_start_matches("http://");
    let address = address.trim_end_matches("/api").parse();
    let faults = Faults::before(address.expect("an address")).await;
    config.server_url = format!("http://{}/api", faults.address);
    let nothing = Fault::Late(Duration::ZERO, "{}".to_owned());
    faults.some(|request| request.ends_with("/config"), 1, nothing);
    let refused = Daytona::connect(config).await.expect_err("no default");
    let hint = refused.hint.expect("a hint");
    assert!(hint.contains("SANDYARD_DAYTONA_SNAPSHOT"), "{hint}");
}

/// `NoCapacity` means that nothing was created.
#[tokio::test(flavor = "multi_thread")]
async fn a_create_that_cannot_be_undone_is_not_reported_as_no_capacity() {
    let counterpart = FakeApi::start().await;
    let provider = counterpart.provider("mine").await;
    let busy = json!({"status": 429, "retry_after": 60});
    for operation in ["upload_files", "delete_sandbox"] {
        counterpart.fault(operation, 9, busy.clone()).await;
    }
    let failed = create(&provider, "one").await.expect_err("busy");
    assert_eq!(failed.kind, ProviderErrorKind::Unavailable, "{failed:?}");
    counterpart.no_faults().await;
    let remaining = ids(&provider).await;
    assert_eq!(remaining.len(), 1, "it is found");
    provider.delete(&remaining[0]).await.expect("delete");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_that_fails_leaves_nothing() {
    use ProviderErrorKind::{Failed, NoCapacity, TimedOut, Unavailable};
    let counterpart = FakeApi::start().await;
    let provider = counterpart.provider("mine").await;
    // It deletes what it could not finish, within the usual timeout.
    let hasty = hasty(&counterpart, 10, 30).await;
    let hang = json!({"kind": "hang"});
    for (operation, fault, kinds) in [
        (
            "create_sandbox",
            json!({"status": 429, "retry_after": 3}),
            &[NoCapacity][..],
        ),
        ("create_sandbox", json!({"status": 500}), &[Unavailable]),
        ("create_sandbox", json!({"kind": "reset"}), &[Unavailable]),
        ("create_sandbox", json!({"kind": "garbage"}), &[Failed]),
        ("create_sandbox", hang.clone(), &[TimedOut]),
        ("upload_files", json!({"status": 500}), &[Unavailable]),
        ("upload_files", json!({"kind": "reset"}), &[Unavailable]),
        ("upload_files", hang.clone(), &[TimedOut]),
        (
            "session_execute_command",
            json!({"status": 500}),
            &[Unavailable],
        ),
        ("replace_labels", json!({"status": 500}), &[Unavailable]),
        ("get_port_preview_url", hang.clone(), &[TimedOut]),
    ] {
        counterpart.fault(operation, 9, fault.clone()).await;
        let request = if fault == hang { &hasty } else { &provider };
        let error = create(request, "one").await.expect_err(operation);
        assert!(
            kinds.contains(&error.kind),
            "{operation} {fault}: {error:?}"
        );
        if kinds == [NoCapacity] {
            let hint = error.hint.expect("a hint");
            assert!(hint.contains("3 seconds"), "{hint}");
        }
        counterpart.no_faults().await;
        assert_eq!(
            ids(&provider).await,
            Vec::<String>::new(),
            "{operation} {fault}"
        );
    }
    let made = create(&provider, "two").await.expect("well again");
    assert_eq!(made.state, SandboxState::Running);
}

/// An incomplete and a slow answer: the sandbox is created once, and found.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_creates_no_second_sandbox() {
    let counterpart = FakeApi::start().await;
    let provider = Daytona::connect(counterpart.config("mine"));
    let provider = provider.await.expect("connect");
    for (name, fault) in [
        ("one", json!({"kind": "half"})),
        ("two", json!({"kind": "slow", "pause": 0.001})),
    ] {
        counterpart.fault("create_sandbox", 1, fault.clone()).await;
        let made = create(&provider, name).await;
        let made = made.unwrap_or_else(|error| panic!("{fault}: {error}"));
        assert_eq!(ids(&provider).await, std::slice::from_ref(&made.id));
        provider.delete(&made.id).await.expect("delete");
    }
}

/// A few refusals are retried.
#[tokio::test(flavor = "multi_thread")]
async fn short_rate_limits_are_retried() {
    let counterpart = FakeApi::start().await;
    let provider = counterpart.provider("mine").await;
    let busy = json!({"status": 429, "retry_after": 0});
    for operation in ["get_sandbox", "upload_files", "session_execute_command"] {
        counterpart.fault(operation, 1, busy.clone()).await;
    }
    counterpart
        .fault("get_sandbox", 1, json!({"kind": "reset"}))
        .await;
    let made = create(&provider, "one").await.expect("made all the same");
    let output = sh(&agent(&provider, &made.id).await, "echo here").await;
    assert_eq!(output.expect("a command"), "here");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_reports_the_kind_of_its_error() {
    use ProviderErrorKind::{Failed, NoCapacity, TimedOut, Unavailable};
    let counterpart = FakeApi::start().await;
    let provider = counterpart.provider("mine").await;
    let hasty = hasty(&counterpart, 15, 15).await;
    let id = create(&provider, "one").await.expect("create").id;
    for (fault, kind) in [
        (json!({"status": 429, "retry_after": 60}), NoCapacity),
        (json!({"status": 503}), Unavailable),
        (json!({"kind": "reset"}), Unavailable),
        (json!({"kind": "half"}), Unavailable),
        (json!({"kind": "garbage"}), Failed),
        (json!({"kind": "hang"}), TimedOut),
    ] {
        counterpart.fault("get_sandbox", 99, fault.clone()).await;
        let request = if kind == TimedOut { &hasty } else { &provider };
        let calls = tokio::join!(
            request.inspect(&id),
            request.stop(&id),
            request.start(&id),
            request.delete(&id),
            request.usage(&id),
        );
        let calls = [
            calls.0.map(drop),
            calls.1.map(drop),
            calls.2.map(drop),
            calls.3,
            calls.4.map(drop),
        ];
        for (number, call) in calls.into_iter().enumerate() {
            let error = call.expect_err("a fault");
            assert_eq!(error.kind, kind, "{fault}, call {number}: {error:?}");
        }
        counterpart.no_faults().await;
    }
    let found = provider
        .inspect(&id)
        .await
        .expect("inspect")
        .expect("there");
    assert_eq!(found.state, SandboxState::Running);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_when_daytona_is_killed() {
    let mut counterpart = FakeApi::start().await;
    let provider = counterpart.provider("mine").await;
    let id = create(&provider, "one").await.expect("create").id;
    let line = "echo kept > ~/file";
    sh(&agent(&provider, &id).await, line)
        .await
        .expect("a command");
    counterpart.kill();
    let missing = provider.inspect(&id).await.expect_err("gone");
    assert_eq!(missing.kind, ProviderErrorKind::Unavailable);
    counterpart.restart();
    assert_eq!(ids(&provider).await, std::slice::from_ref(&id));
    let back = provider
        .inspect(&id)
        .await
        .expect("inspect")
        .expect("there");
    if back.state == SandboxState::Stopped {
        provider.start(&id).await.expect("start");
    }
    let output = sh(&agent(&provider, &id).await, "cat ~/file").await;
    assert_eq!(output.expect("a command"), "kept");
    provider.delete(&id).await.expect("delete");
    assert_eq!(ids(&provider).await, Vec::<String>::new());
}
