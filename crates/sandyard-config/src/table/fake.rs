//! `[fake]`: sandboxes that are none.

use crate::kind::Kind;
use crate::setting::{Section, Setting};

pub(super) const SECTION: Section = Section {
    name: "fake",
    doc: "For tests of programs that use this server, where `fake` is among the providers: nothing is run, commands answer by rules.",
    settings: &[
        Setting::new(
            "fake.rules",
            Kind::File,
            "",
            "What commands answer: a JSON array of objects with `command` (a regular expression), `stdout`, `stderr`, `exit_code`, `files`.",
        )
        .env(&["SANDBOX_FAKE_RULES"])
        .otherwise("a few commands such as `echo` and `cat` are understood, all others fail")
        .example("fake-rules.json"),
        Setting::new(
            "fake.seed",
            Kind::Whole(0, u64::MAX),
            "",
            "Makes the provider's ids and times the same in every run.",
        )
        .env(&["SANDBOX_FAKE_SEED"])
        .otherwise("they are new in every run")
        .example("1"),
    ],
};
