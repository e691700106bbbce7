//! `[fake]`: the provider `fake`.

use crate::kind::Kind;
use crate::setting::{Section, Setting};

pub(super) const SECTION: Section = Section {
    name: "fake",
    doc: "For tests of client programs, if the provider `fake` is enabled. It runs nothing; commands are answered by rules.",
    settings: &[
        Setting::new(
            "fake.rules",
            Kind::File,
            "",
            "Path of a JSON file with the answers to commands: an array of objects with `command` (a regular expression), `stdout`, `stderr`, `exit_code`, `files`.",
        )
        .env(&["SANDBOX_FAKE_RULES"])
        .when_unset("a few commands such as `echo` and `cat` work, all others fail")
        .example("fake-rules.json"),
        Setting::new(
            "fake.seed",
            Kind::Whole(0, u64::MAX),
            "",
            "Seed that makes the provider's ids and times the same in every run.",
        )
        .env(&["SANDBOX_FAKE_SEED"])
        .when_unset("ids and times differ in every run")
        .example("1"),
    ],
};
