//! `[database]`: where rows are kept.

use crate::kind::Kind;
use crate::setting::{Section, Setting};

pub(super) const SECTION: Section = Section {
    name: "database",
    doc: "What is remembered, and where.",
    settings: &[Setting::new(
        "database.url",
        Kind::Url(&["sqlite", "postgres", "postgresql"]),
        "",
        "The database. Several servers may share one PostgreSQL and then behave as one. A driver behind the scheme, as in \
         `postgresql+asyncpg:`, is ignored.",
    )
    .env(&["DATABASE_URL", "SANDBOX_DATABASE_URL"])
    .flag("--database-url")
    .otherwise("the SQLite file `sandyard.db` in the data directory")
    .example("postgres://sandyard:password@db.example.com:5432/sandyard")],
};
