//! Snapshots at Daytona: saved, used, listed, removed; separate for each installation. Needs root.

use sandyard_provider::prelude::*;
use sandyard_provider::{InstanceSpec, ProviderErrorKind};
use serde_json::{Value, json};

use crate::agent_client::agent;
use crate::daytona::{create_with_file, sh, spec};
use crate::daytona_fake_api::FakeApi;

#[tokio::test(flavor = "multi_thread")]
async fn sandboxes_start_from_a_snapshot() {
    let counterpart = FakeApi::start().await;
    let provider = counterpart.provider("mine").await;
    let id = create_with_file(&provider).await;
    let retained = provider.snapshot(&id, "mine-1").await.expect("snapshot");
    assert_eq!(retained.name, "mine-1");
    let second = provider.snapshot(&id, "mine-1").await.expect_err("taken");
    assert_eq!(second.kind, ProviderErrorKind::Conflict);
    for name in ["", "..", "a/b", "a\0b"] {
        let error = provider.snapshot(&id, name).await.expect_err(name);
        assert_eq!(error.kind, ProviderErrorKind::Invalid, "{name:?}");
    }
    // The owner of an id is unknown to the service.
    let there = "sandyard-mine-mine-1";
    let answer = counterpart
        .ask("GET", &format!("/snapshots/{there}"), Value::Null)
        .await;
    let by_id = answer["id"].as_str().expect("an id");
    for invalid in [by_id, by_id.to_uppercase().as_str(), there, "", ".."] {
        let template = invalid.to_owned();
        let spec = spec(&provider, "two");
        let made = provider.create(&InstanceSpec { template, ..spec }).await;
        assert_eq!(
            made.expect_err("refused").kind,
            ProviderErrorKind::NotFound,
            "{invalid}"
        );
    }
    let error = provider.snapshot(&id, by_id).await.expect_err("an id");
    assert_eq!(error.kind, ProviderErrorKind::Invalid);
    let chosen = InstanceSpec {
        template: "daytona-vm-small".to_owned(),
        is_restricted: true,
        ..spec(&provider, "two")
    };
    let error = provider.create(&chosen).await.expect_err("an admin's");
    assert_eq!(error.kind, ProviderErrorKind::NotFound);
    let from_it = InstanceSpec {
        is_restricted: true,
        template: "mine-1".to_owned(),
        access_token: "token".to_owned(),
        ..spec(&provider, "two")
    };
    let made = provider.create(&from_it).await.expect("create from it");
    assert_eq!(made.template, "mine-1");
    let output = sh(&agent(&provider, &made.id).await, "cat ~/file").await;
    assert_eq!(output.expect("a command"), "kept");
}

/// One account with two installations and a snapshot created by hand.
#[tokio::test(flavor = "multi_thread")]
async fn an_installation_removes_only_its_own_snapshots() {
    let counterpart = FakeApi::start().await;
    let (own, foreign) = (
        counterpart.provider("mine").await,
        counterpart.provider("another").await,
    );
    let id = own.create(&spec(&own, "one")).await.expect("create").id;
    own.snapshot(&id, "kept").await.expect("snapshot");
    let path = format!("/sandbox/{id}/snapshot");
    counterpart
        .ask("POST", &path, json!({"name": "by-hand"}))
        .await;
    let names = async |provider: &dyn Provider| {
        let all = provider.templates().await.expect("templates");
        let names: Vec<_> = all.into_iter().map(|one| one.name).collect();
        names
    };
    let default = own.info().default_template.as_str();
    assert_eq!(
        names(&own).await,
        ["by-hand", default, "daytona-vm-small", "kept"]
    );
    assert!(
        names(&foreign)
            .await
            .contains(&"sandyard-mine-kept".to_owned())
    );

    // Snapshots of others stay, whatever their names, and restricted callers cannot use them.
    for (provider, name) in [(&own, "by-hand"), (&foreign, "sandyard-mine-kept")] {
        let error = provider.remove_template(name).await.expect_err(name);
        assert_eq!(error.kind, ProviderErrorKind::Unsupported);
        let requested = InstanceSpec {
            template: name.to_owned(),
            is_restricted: true,
            ..spec(provider, "two")
        };
        let error = provider.create(&requested).await.expect_err(name);
        assert_eq!(error.kind, ProviderErrorKind::NotFound);
    }
    let error = foreign
        .remove_template("kept")
        .await
        .expect_err("another installation's");
    assert_eq!(error.kind, ProviderErrorKind::NotFound);
    let error = own.snapshot(&id, "by-hand").await.expect_err("taken");
    assert_eq!(error.kind, ProviderErrorKind::Conflict);

    // The source of a snapshot may have been deleted.
    own.delete(&id).await.expect("delete");
    own.remove_template("kept").await.expect("remove");
    assert_eq!(names(&own).await, ["by-hand", default, "daytona-vm-small"]);
}
