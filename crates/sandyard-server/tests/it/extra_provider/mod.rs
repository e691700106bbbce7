//! A provider that only this test contains: its folder has everything that a provider's folder has.

use std::time::Duration;

use sandyard_config::{Kind, ProviderSettings, Section, Setting};
use sandyard_provider::{Capabilities, Verb};
use sandyard_provider_fake::{FakeConfig, FakeProvider};
use sandyard_providers::registry::{ConnectContext, Connecting, Registration, layered};

/// The provider in the registry.
pub(crate) static REGISTRATION: Registration = Registration {
    settings: ProviderSettings {
        name: "extra",
        summary: "in a test",
        section: Some(Section {
            name: "extra",
            doc: "For sandboxes of a test, where `extra` is among the providers.",
            settings: &[
                Setting::new("extra.api_key", Kind::Text)
                    .doc("The key of the account.")
                    .env(&["EXTRA_API_KEY"])
                    .secret()
                    .required()
                    .example("extra-0123456789"),
                Setting::new("extra.latency", Kind::Duration(0, 60))
                    .default("0")
                    .doc("How long a create takes."),
            ],
        }),
    },
    capabilities: Capabilities::ALL,
    connect,
};

fn connect(context: ConnectContext<'_>) -> Connecting<'_> {
    Box::pin(async move {
        let fake = FakeProvider::for_users(&FakeConfig::default()).expect("no rules to read");
        let fake = fake.with_info(|info| {
            info.name = REGISTRATION.name().to_owned();
            info.location = "extra:test".to_owned();
        });
        assert_eq!(context.text("extra.api_key"), "secret");
        let latency: Duration = context.settings.values.duration("extra.latency");
        fake.delay(Verb::Create, latency);
        Ok(layered(fake))
    })
}
