//! States of sandboxes at Daytona: failed, archived, retained, unfinished, of another target. Needs root.

use sandyard_core::SandboxState;
use sandyard_provider::prelude::*;
use sandyard_provider::{InstanceSpec, ProviderErrorKind};
use sandyard_providers::Daytona;
use serde_json::{Value, json};

use crate::agent_client::agent;
use crate::daytona::{create_with_file, sh, spec, until};
use crate::daytona_fake_api::FakeApi;

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_sandbox_is_reported_and_recovered_if_possible() {
    let counterpart = FakeApi::start().await;
    let provider = counterpart.provider("mine").await;
    for (name, is_recoverable) in [("one", true), ("two", false)] {
        let id = provider
            .create(&spec(&provider, name))
            .await
            .expect("create")
            .id;
        counterpart.break_one(&id, is_recoverable).await;
        let broken = provider
            .inspect(&id)
            .await
            .expect("inspect")
            .expect("there");
        assert_eq!(broken.state, SandboxState::Stopped);
        assert!(broken.reason.is_some(), "{broken:?}");
        let started = provider.start(&id).await;
        if is_recoverable {
            assert_eq!(started.expect("recovered").state, SandboxState::Running);
            let output = sh(&agent(&provider, &id).await, "echo back").await;
            assert_eq!(output.expect("a command"), "back");
        } else {
            assert_eq!(
                started.expect_err("broken").kind,
                ProviderErrorKind::Conflict
            );
        }
        provider.delete(&id).await.expect("delete");
        assert_eq!(provider.inspect(&id).await.expect("inspect"), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archived_sandbox_starts_with_its_files() {
    let counterpart = FakeApi::start().await;
    let provider = counterpart.provider("mine").await;
    let id = create_with_file(&provider).await;
    provider.stop(&id).await.expect("stop");
    counterpart
        .ask("POST", &format!("/sandbox/{id}/archive"), Value::Null)
        .await;
    until(&counterpart, &id, "archived").await;
    let archived = provider
        .inspect(&id)
        .await
        .expect("inspect")
        .expect("there");
    assert_eq!(archived.state, SandboxState::Stopped);
    provider.start(&id).await.expect("start");
    let output = sh(&agent(&provider, &id).await, "cat ~/file").await;
    assert_eq!(output.expect("a command"), "kept");
}

/// The snapshot of a sandbox decides whether it can be paused, not the default one.
#[tokio::test(flavor = "multi_thread")]
async fn only_virtual_machines_are_paused_and_others_are_stopped() {
    let counterpart = FakeApi::start().await;
    let mut config = counterpart.config("mine");
    config.snapshot = Some("daytona-vm-small".to_owned());
    let provider = Daytona::connect(config).await.expect("connect");
    assert!(provider.info().capabilities.can_pause);
    let container = InstanceSpec {
        template: "daytona-small".to_owned(),
        ..spec(&provider, "one")
    };
    let container = provider.create(&container).await.expect("create").id;
    let refused = provider.pause(&container).await.expect_err("no machine");
    assert_eq!(refused.kind, ProviderErrorKind::Unsupported);
    let found = provider.inspect(&container).await.expect("inspect");
    assert_eq!(found.expect("there").state, SandboxState::Running);
    let machine = provider.create(&spec(&provider, "two")).await;
    let machine = machine.expect("create").id;
    let paused = provider.pause(&machine).await.expect("pause");
    assert_eq!(paused.state, SandboxState::Paused);
    // Daytona does the same when this server is down: nothing is lost that can be retained.
    for (id, stop, pause) in [(&container, 60, 0), (&machine, 0, 60)] {
        let answer = counterpart
            .ask("GET", &format!("/sandbox/{id}"), Value::Null)
            .await;
        let intervals = [
            "autoStopInterval",
            "autoPauseInterval",
            "autoArchiveInterval",
        ];
        let intervals = intervals.map(|name| answer[name].as_u64());
        assert_eq!(intervals, [Some(stop), Some(pause), Some(10080)]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_maximum_lifespan_is_reported() {
    let counterpart = FakeApi::start().await;
    let provider = counterpart.provider("mine").await;
    counterpart.bound_life(5000).await;
    let made = provider.create(&spec(&provider, "one")).await;
    let made = made.expect("create");
    let output =
        |limitations: &[String]| limitations.iter().any(|lack| lack.contains("destroys it"));
    assert!(output(&made.limitations), "{:?}", made.limitations);
    let instances = provider.list().await.expect("list");
    assert!(
        output(&instances[0].limitations),
        "{:?}",
        instances[0].limitations
    );
}

/// Two servers of one installation with one account, each with its own target.
#[tokio::test(flavor = "multi_thread")]
async fn sandboxes_of_another_target_are_not_listed() {
    let counterpart = FakeApi::start().await;
    let of = async |target: Option<&str>| {
        let mut config = counterpart.config("mine");
        config.target = target.map(str::to_owned);
        Daytona::connect(config).await.expect("connect")
    };
    let (europe, america, any) = (of(Some("eu")).await, of(Some("us")).await, of(None).await);
    let made = europe.create(&spec(&europe, "one")).await;
    let id = made.expect("create").id;
    for other in [&america, &any] {
        assert_eq!(other.list().await.expect("list"), []);
        assert_eq!(other.inspect(&id).await.expect("inspect"), None);
        other.delete(&id).await.expect("nothing of its");
    }
    assert_eq!(europe.list().await.expect("list").len(), 1);
}

/// The creating server was killed after the start and before the installation of the agent.
#[tokio::test(flavor = "multi_thread")]
async fn an_unfinished_sandbox_never_runs() {
    let counterpart = FakeApi::start().await;
    let provider = counterpart.provider("mine").await;
    counterpart
        .fault("upload_files", 9, json!({"kind": "hang"}))
        .await;
    let requested = spec(&provider, "one");
    let half = {
        let make = provider.create(&requested);
        tokio::pin!(make);
        let inspection = async {
            loop {
                let all = provider.list().await.expect("list");
                if let Some(one) = all.into_iter().next() {
                    until(&counterpart, &one.id, "started").await;
                    return one.id;
                }
            }
        };
        tokio::select! {
            made = &mut make => panic!("{made:?}"),
            id = inspection => id,
        }
    };
    counterpart.no_faults().await;
    let later = counterpart.provider("mine").await;
    let found = later.inspect(&half).await.expect("inspect").expect("there");
    assert_eq!(found.state, SandboxState::Creating);
    assert_eq!(
        later.list().await.expect("list")[0].state,
        SandboxState::Creating
    );
    later.delete(&half).await.expect("delete");
    let content = later.create(&requested).await.expect("create");
    let later = counterpart.provider("mine").await;
    let found = later
        .inspect(&content.id)
        .await
        .expect("inspect")
        .expect("there");
    assert_eq!(found.state, SandboxState::Running);
}
