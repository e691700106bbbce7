//! Snapshots at Daytona: kept, started from, listed, removed; each installation's own. Needs root.

use sandyard_provider::prelude::*;
use sandyard_provider::{InstanceSpec, ProviderErrorKind};
use serde_json::{Value, json};

use crate::agent_client::agent;
use crate::daytona::{one_with_a_file, sh, spec};
use crate::daytona_fake_api::FakeApi;

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_is_what_others_start_from() {
    let counterpart = FakeApi::start().await;
    let provider = counterpart.provider("mine").await;
    let id = one_with_a_file(&provider).await;
    let kept = provider.snapshot(&id, "mine-1").await.expect("snapshot");
    assert_eq!(kept.name, "mine-1");
    let again = provider.snapshot(&id, "mine-1").await.expect_err("taken");
    assert_eq!(again.kind, ProviderErrorKind::Conflict);
    for name in ["", "..", "a/b", "a\0b"] {
        let error = provider.snapshot(&id, name).await.expect_err(name);
        assert_eq!(error.kind, ProviderErrorKind::Invalid, "{name:?}");
    }
    // Its id is nobody's, as far as the service in front knows.
    let there = "sandyard-mine-mine-1";
    let told = counterpart
        .ask("GET", &format!("/snapshots/{there}"), Value::Null)
        .await;
    let by_id = told["id"].as_str().expect("an id");
    for odd in [by_id, by_id.to_uppercase().as_str(), there, "", ".."] {
        let template = odd.to_owned();
        let spec = spec(&provider, "two");
        let made = provider.create(&InstanceSpec { template, ..spec }).await;
        assert_eq!(
            made.expect_err("refused").kind,
            ProviderErrorKind::NotFound,
            "{odd}"
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
    let said = sh(&agent(&provider, &made.id).await, "cat ~/file").await;
    assert_eq!(said.expect("a command"), "kept");
}

/// One account, two installations and what was made by hand.
#[tokio::test(flavor = "multi_thread")]
async fn only_what_an_installation_made_is_removed_by_it() {
    let counterpart = FakeApi::start().await;
    let (ours, theirs) = (
        counterpart.provider("mine").await,
        counterpart.provider("another").await,
    );
    let id = ours.create(&spec(&ours, "one")).await.expect("create").id;
    ours.snapshot(&id, "kept").await.expect("snapshot");
    let path = format!("/sandbox/{id}/snapshot");
    counterpart
        .ask("POST", &path, json!({"name": "by-hand"}))
        .await;
    let names = async |provider: &dyn Provider| {
        let all = provider.templates().await.expect("templates");
        let names: Vec<_> = all.into_iter().map(|one| one.name).collect();
        names
    };
    let default = ours.info().default_template.as_str();
    assert_eq!(
        names(&ours).await,
        ["by-hand", default, "daytona-vm-small", "kept"]
    );
    assert!(
        names(&theirs)
            .await
            .contains(&"sandyard-mine-kept".to_owned())
    );

    // What others made stays, whatever it is called, and whoever may not choose does not start from it.
    for (provider, name) in [(&ours, "by-hand"), (&theirs, "sandyard-mine-kept")] {
        let error = provider.remove_template(name).await.expect_err(name);
        assert_eq!(error.kind, ProviderErrorKind::Unsupported);
        let wanted = InstanceSpec {
            template: name.to_owned(),
            is_restricted: true,
            ..spec(provider, "two")
        };
        let error = provider.create(&wanted).await.expect_err(name);
        assert_eq!(error.kind, ProviderErrorKind::NotFound);
    }
    let error = theirs
        .remove_template("kept")
        .await
        .expect_err("not theirs");
    assert_eq!(error.kind, ProviderErrorKind::NotFound);
    let error = ours.snapshot(&id, "by-hand").await.expect_err("taken");
    assert_eq!(error.kind, ProviderErrorKind::Conflict);

    // The sandbox it was made of need not be there any more.
    ours.delete(&id).await.expect("delete");
    ours.remove_template("kept").await.expect("remove");
    assert_eq!(names(&ours).await, ["by-hand", default, "daytona-vm-small"]);
}
