//! The fake passes the suite of the real ones.

use std::sync::Arc;

use sandyard_provider::Capabilities;
use sandyard_provider::conformance::{self, Options, Outcome};
use sandyard_provider_fake::{FakeConfig, FakeProvider};

#[tokio::test]
async fn the_fake_is_a_provider_like_any_other() {
    let fake = FakeProvider::new();
    let options = Options {
        foreign_instances: vec![fake.add_foreign_instance()],
        ..Options::default()
    };
    let report = conformance::run(Arc::new(fake.clone()), &options).await;
    report.assert();
    // All but the seven that need an agent.
    assert_eq!(report.passed(), report.0.len() - 7, "\n{report}");
    assert_eq!(fake.instances().len(), 1, "only the stranger is left");
}

#[tokio::test]
async fn a_fake_that_can_do_little_passes_what_is_left() {
    let fake = FakeProvider::new().with_info(|info| info.capabilities = Capabilities::default());
    let report = conformance::run(Arc::new(fake), &Options::default()).await;
    report.assert();
    assert!(report.passed() >= 5, "\n{report}");
}

#[tokio::test]
async fn what_does_not_hold_is_reported_by_name() {
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
    assert_eq!(failed, ["what_it_says_of_itself_is_sound"]);
}

#[tokio::test]
async fn the_fake_for_users_passes_all_of_it() {
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
