//! The fake passes the conformance suite of the real providers.

use std::sync::Arc;

use sandyard_provider::Capabilities;
use sandyard_provider::conformance::{self, Options, Outcome};
use sandyard_provider_fake::{FakeConfig, FakeProvider};

#[tokio::test]
async fn the_fake_passes_every_check_that_needs_no_agent() {
    let fake = FakeProvider::new();
    let options = Options {
        foreign_instances: vec![fake.add_foreign_instance()],
        ..Options::default()
    };
    let report = conformance::run(Arc::new(fake.clone()), &options).await;
    report.assert();
    // All but the seven that need an agent.
    assert_eq!(report.passed(), report.0.len() - 7, "\n{report}");
    assert_eq!(
        fake.instances().len(),
        1,
        "only the foreign instance remains"
    );
}

#[tokio::test]
async fn a_fake_with_few_capabilities_passes_the_remaining_checks() {
    let fake = FakeProvider::new().with_info(|info| info.capabilities = Capabilities::default());
    let report = conformance::run(Arc::new(fake), &Options::default()).await;
    report.assert();
    assert!(report.passed() >= 5, "\n{report}");
}

#[tokio::test]
async fn a_failed_check_is_reported_by_name() {
    let fake = FakeProvider::new();
    fake.fail_next(
        sandyard_provider::Verb::CheckHealth,
        sandyard_provider::ProviderErrorKind::Unavailable,
    );
    let report = conformance::run(Arc::new(fake), &Options::default()).await;
    let failed: Vec<_> = report
        .0
        .iter()
        .filter(|(_, outcome)| matches!(outcome, Outcome::Failed(_)))
        .map(|(name, _)| *name)
        .collect();
    assert_eq!(failed, ["the_providers_info_is_valid"]);
}

#[tokio::test]
async fn the_fake_for_users_passes_every_check() {
    for seed in [None, Some(7)] {
        let config = FakeConfig { rules: None, seed };
        let fake = FakeProvider::for_users(&config).expect("no rules to read");
        let options = Options {
            foreign_instances: vec![fake.add_foreign_instance()],
            ..Options::default()
        };
        let report = conformance::run(Arc::new(fake), &options).await;
        report.assert();
        assert_eq!(
            report.passed(),
            report.0.len(),
            "nothing is skipped\n{report}"
        );
    }
}
