//! `get_database_connection`: the connection string of a database.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::listens;
use crate::call::Call;
use crate::reply::{Answer, Problem, Reply};
use crate::tool::{Effect, Tool};
use crate::tool_state::ToolState;

/// File name of the SQLite database in the workspace.
const SQLITE_FILE: &str = "database.sqlite3";
/// Maximum length of a URL from the environment.
const MAX_URL: usize = 4096;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// One of sqlite, postgres, mysql, redis.
    database_type: String,
}

#[derive(Serialize, JsonSchema)]
struct Connection {
    /// Type of the database.
    database_type: &'static str,
    /// Connection string for clients.
    connection_string: String,
    /// Source of the connection string.
    source: &'static str,
}

/// A type of database server.
struct Kind {
    name: &'static str,
    other_names: &'static [&'static str],
    port: u16,
    variable: &'static str,
    schemes: &'static [&'static str],
    default: &'static str,
    start: &'static str,
}

const KINDS: &[Kind] = &[
    Kind {
        name: "postgres",
        other_names: &["postgresql"],
        port: 5432,
        variable: "DATABASE_URL",
        schemes: &["postgres:", "postgresql:"],
        default: "postgresql://postgres@127.0.0.1:5432/postgres",
        start: "install it (apt-get install postgresql) and start it with `pg_ctlcluster VERSION main start`",
    },
    Kind {
        name: "mysql",
        other_names: &["mariadb"],
        port: 3306,
        variable: "DATABASE_URL",
        schemes: &["mysql:", "mariadb:"],
        default: "mysql://root@127.0.0.1:3306/mysql",
        start: "install it (apt-get install mariadb-server) and start it with `mariadbd-safe &`",
    },
    Kind {
        name: "redis",
        other_names: &["valkey"],
        port: 6379,
        variable: "REDIS_URL",
        schemes: &["redis:", "rediss:"],
        default: "redis://127.0.0.1:6379/0",
        start: "install it (apt-get install redis-server) and start it with `redis-server --daemonize yes`",
    },
];

/// The tool.
pub(super) fn tool() -> Tool {
    crate::tool::tool("get_database_connection", Effect::Reads, connection)
        .title("Get a database connection")
        .description("Return the connection string of a database: sqlite (a file in the workspace, always available), or postgres, mysql or redis (a \
         server in this sandbox, or the one in DATABASE_URL or REDIS_URL).")
        .with_output::<Connection>()
}

async fn connection(tool_state: Arc<ToolState>, args: Args, _: Call) -> Answer {
    let requested = args.database_type.trim().to_ascii_lowercase();
    if matches!(requested.as_str(), "sqlite" | "sqlite3") {
        let file = tool_state.workspace.root().join(SQLITE_FILE);
        let string = format!("sqlite:///{}", file.display());
        return Ok(connection_reply(
            "sqlite",
            string,
            "a file that is created on the first write",
        ));
    }
    let is_wanted =
        |kind: &&Kind| kind.name == requested || kind.other_names.contains(&requested.as_str());
    let kind = KINDS.iter().find(is_wanted).ok_or_else(|| {
        Problem::new(format!(
            "unknown database type {requested:?}: choose one of sqlite, postgres, mysql, redis"
        ))
    })?;
    let url = std::env::var(kind.variable).unwrap_or_default();
    if url.len() <= MAX_URL && kind.schemes.iter().any(|scheme| url.starts_with(scheme)) {
        return Ok(connection_reply(kind.name, url, kind.variable));
    }
    if listens(kind.port).await {
        return Ok(connection_reply(
            kind.name,
            kind.default.to_owned(),
            "a server on the default port in this sandbox",
        ));
    }
    Err(Problem::new(format!(
        "no {} server found: nothing listens on port {}, and {} does not name one; {}, or use sqlite",
        kind.name, kind.port, kind.variable, kind.start
    )))
}

fn connection_reply(
    database_type: &'static str,
    connection_string: String,
    source: &'static str,
) -> Reply {
    let text = format!("{connection_string}\n({source})");
    Reply::text(text).with_structured(Connection {
        database_type,
        connection_string,
        source,
    })
}
