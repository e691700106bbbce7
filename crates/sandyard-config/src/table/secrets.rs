//! `[secrets]`: how secrets are kept.

use crate::kind::Kind;
use crate::setting::{Section, Setting};

pub(super) const SECTION: Section = Section {
    name: "secrets",
    doc: "Secrets that sandboxes use without seeing them. Their values are sealed in the database.",
    settings: &[Setting::new(
        "secrets.key",
        Kind::SealingKey,
        "",
        "Seals the values of secrets: 32 bytes, as 64 hexadecimal digits or as base64. Whoever loses it loses the values. \
         Servers that share a PostgreSQL need the same one, so set it there. Make one with `openssl rand -hex 32`.",
    )
    .otherwise("made at the first start and kept in `secrets.key` of the data directory")
    .example("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")
    .secret()],
};
