//! `[database]`: where the server stores its data.

use crate::kind::Kind;
use crate::setting::{Section, Setting};

pub(super) const SECTION: Section = Section {
    name: "database",
    doc: "Where the server stores sandboxes, users, keys and events.",
    settings: &[Setting::new("database.url", Kind::Url(&["sqlite", "postgres", "postgresql"]))
        .doc("URL of the database. Several servers can share one PostgreSQL database and then act as one. A driver name in the scheme, \
         as in `postgresql+asyncpg:`, is ignored.")
        .env(&["DATABASE_URL", "SANDBOX_DATABASE_URL"])
        .flag("--database-url")
        .when_unset("the SQLite file `sandyard.db` in the data directory")
        .example("postgres://sandyard:password@db.example.com:5432/sandyard")],
};
