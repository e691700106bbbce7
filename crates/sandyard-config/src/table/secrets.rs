//! `[secrets]`: the key that encrypts secrets.

use crate::kind::Kind;
use crate::setting::{Section, Setting};

pub(super) const SECTION: Section = Section {
    name: "secrets",
    doc: "Secrets that sandboxes use without seeing them. Their values are encrypted in the database.",
    settings: &[Setting::new("secrets.key", Kind::SealingKey)
        .doc("Key that encrypts the values of secrets: 32 bytes, as 64 hexadecimal digits or as base64. Without the key the values are lost. \
         Servers that share a database need the same key. Create one with `openssl rand -hex 32`.")
        .when_unset("created at the first start and stored in `secrets.key` in the data directory")
        .example("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")
    .secret()],
};
