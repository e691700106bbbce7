//! All layers together behave like the provider they surround.

use std::sync::Arc;

use sandyard_core::Clock;
use sandyard_provider::Verb;
use sandyard_provider::conformance::{self, Options};
use sandyard_provider::layers::{self, LayerSettings, RetrySettings};
use sandyard_provider::prelude::*;
use sandyard_provider_fake::FakeProvider;

#[tokio::test]
async fn with_all_layers_it_passes_the_suite() {
    let fake = FakeProvider::new();
    let stack = layers::stack(
        Arc::new(fake.clone()),
        LayerSettings::default(),
        Clock::System,
    );
    let options = Options {
        foreign_instances: vec![fake.add_foreign_instance()],
        ..Options::default()
    };
    let bare = conformance::run(Arc::new(fake.clone()), &options).await;
    let report = conformance::run(stack, &options).await;
    report.assert();
    assert_eq!(report.passed(), bare.passed(), "\n{report}");
}

#[tokio::test(start_paused = true)]
async fn with_injected_faults_and_retries_it_passes_the_suite() {
    let fake = FakeProvider::new();
    // Calls that must not be repeated get no faults.
    let repeatable = Verb::ALL.iter().filter(|verb| {
        !matches!(
            verb,
            Verb::Create
                | Verb::Fork
                | Verb::Snapshot
                | Verb::ImportTemplate
                | Verb::RemoveTemplate
        )
    });
    let rules = repeatable.map(|verb| format!("{verb}:refused=0.2,{verb}:no_capacity=0.1"));
    let rules = rules.collect::<Vec<_>>().join(",");
    let settings = LayerSettings {
        chaos: Some(format!("seed=1,{rules}").parse().expect("fine")),
        retry: Some(RetrySettings {
            attempts: 20,
            total: std::time::Duration::from_secs(300),
            ..RetrySettings::default()
        }),
        ..LayerSettings::default()
    };
    let stack = layers::stack(Arc::new(fake.clone()), settings, Clock::System);
    let bare = conformance::run(Arc::new(fake), &Options::default()).await;
    let report = conformance::run(stack, &Options::default()).await;
    report.assert();
    assert_eq!(report.passed(), bare.passed(), "\n{report}");
}

#[tokio::test]
async fn info_and_flows_are_those_of_the_inner_provider() {
    let fake = FakeProvider::new().with_info(|info| info.location = "remote".to_owned());
    let stack = layers::stack(
        Arc::new(fake.clone()),
        LayerSettings::default(),
        Clock::System,
    );
    assert_eq!(stack.info(), fake.info());
    assert!(stack.take_flows().is_some());
    assert!(
        fake.take_flows().is_none(),
        "the inner provider's flows were taken"
    );
    stack.close().await;
}
