//! The `fake` provider, for tests of programs that use this server: nothing runs, commands answer by rules.

use sandyard_config::{Kind, ProviderSettings, Section, Setting};
use sandyard_provider::{Capabilities, ProviderError, ProviderErrorKind};
use sandyard_provider_fake::{FakeConfig, FakeProvider};

use crate::registry::{ConnectContext, Connecting, Registration, layered};

/// The `fake` provider in the registry.
pub static REGISTRATION: Registration = Registration {
    settings: ProviderSettings {
        name: "fake",
        summary: "nowhere: for tests of programs that use this server",
        section: Some(SECTION),
    },
    capabilities: Capabilities {
        has_external_templates: false,
        ..Capabilities::ALL
    },
    connect,
};

const SECTION: Section = Section {
    name: "fake",
    doc: "For tests of client programs, if the provider `fake` is enabled. It runs nothing; commands are answered by rules.",
    settings: &[
        Setting::new("fake.rules", Kind::File)
            .doc("Path of a JSON file with the answers to commands: an array of objects with `command` (a regular expression), `stdout`, `stderr`, `exit_code`, `files`.")
            .env(&["SANDBOX_FAKE_RULES"])
            .when_unset("a few commands such as `echo` and `cat` work, all others fail")
            .example("fake-rules.json"),
        Setting::new("fake.seed", Kind::Integer(0, u64::MAX))
            .doc("Seed that makes the provider's ids and times the same in every run.")
            .env(&["SANDBOX_FAKE_SEED"])
            .when_unset("ids and times differ in every run")
            .example("1"),
    ],
};

fn connect(context: ConnectContext<'_>) -> Connecting<'_> {
    Box::pin(async move {
        let values = &context.settings.values;
        let config = FakeConfig {
            rules: values.path("fake.rules"),
            seed: values.maybe_small("fake.seed"),
        };
        let fake = FakeProvider::for_users(&config).map_err(|error| {
            let message = "failed to read the file of `fake.rules`";
            ProviderError::new(ProviderErrorKind::Invalid, message).source(error)
        })?;
        Ok(layered(fake))
    })
}
