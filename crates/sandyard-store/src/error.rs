//! Failures of the store.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::disk;

/// Result of an operation of the store.
pub(crate) type Result<T, E = StoreError> = std::result::Result<T, E>;

/// A failure of the store. A missing row is not an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The database is unreachable, or the connection broke. A later attempt may succeed.
    #[error("the database is unreachable: {action}")]
    Unavailable {
        /// What the store was doing.
        action: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The disk of the database is full. The database works again as soon as there is space.
    #[error("the disk of the database is full: {action}")]
    Full {
        /// What the store was doing.
        action: String,
        /// The directory of the database file and its free bytes; none for PostgreSQL.
        disk: Option<(PathBuf, u64)>,
        /// The error of the database.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The disk of the database failed or is read-only. The database works again as soon as the disk does.
    #[error("the disk of the database failed: {reason}: {action}")]
    DiskFailed {
        /// What the store was doing.
        action: String,
        /// SQLite's description: `disk I/O error`, `attempt to write a readonly database`, ….
        reason: String,
    },
    /// The database rejected a statement.
    #[error("the database failed: {action}")]
    Refused {
        /// What the store was doing.
        action: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Another sandbox of the same owner has the alias.
    #[error("another sandbox of this owner has the alias")]
    AliasTaken,
    /// A row has a value that this version cannot read.
    #[error("invalid row in the table `{table}`: {detail}")]
    Corrupt {
        /// The table.
        table: &'static str,
        /// What is wrong.
        detail: String,
    },
    /// The URL of the database is invalid.
    #[error("`{url}` is not a database URL: {detail}")]
    BadUrl {
        /// The URL, without its password.
        url: String,
        /// What is wrong.
        detail: String,
    },
    /// The cursor of a list is invalid.
    #[error("`{cursor}` is not a valid cursor")]
    BadCursor {
        /// The cursor.
        cursor: String,
    },
    /// A newer version has changed the tables; this one would damage them.
    #[error(
        "the database has schema version {version}, but this program supports up to version {supported}: run a newer version, or restore an older database"
    )]
    TooNew {
        /// The schema version of the database.
        version: i64,
        /// The newest schema version that this program supports.
        supported: i64,
    },
}

impl StoreError {
    /// Classifies a failure of `sqlx`.
    pub(crate) fn of(action: &'static str, error: &sqlx::Error) -> Self {
        let source = Box::new(Cause(error.to_string()));
        let action = action.to_owned();
        if is_transient(error) {
            Self::Unavailable { action, source }
        } else if is_disk_full(error) {
            let disk = None;
            Self::Full {
                action,
                disk,
                source,
            }
        } else if is_alias_taken(error) {
            Self::AliasTaken
        } else {
            Self::Refused { action, source }
        }
    }

    /// Says whether the same request may succeed later: the store is unreachable, or its disk is full or failed.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unavailable { .. } | Self::Full { .. } | Self::DiskFailed { .. }
        )
    }

    /// A failure of a SQLite file.
    pub(crate) fn of_file(
        action: &'static str,
        error: &sqlx::Error,
        database: Option<&Path>,
    ) -> Self {
        let (Some(database), Some(code)) = (database, sqlite_code(error)) else {
            return Self::of(action, error);
        };
        // A failing device may also return pages of zeros, which look like a damaged database.
        let is_disk_error = matches!(code, READONLY | IOERR | CORRUPT | CANTOPEN | NOTADB)
            || error.to_string().contains("no such table");
        let directory = database.parent().unwrap_or(database);
        // SQLite reports a full disk as an I/O error where it maps the file, and as CANTOPEN where it creates one.
        if code == FULL || (is_disk_error && disk::is_full(directory)) {
            let free = disk::free_bytes(directory).unwrap_or(0);
            return Self::Full {
                action: action.to_owned(),
                disk: Some((directory.to_owned(), free)),
                source: Box::new(Cause(error.to_string())),
            };
        }
        match error {
            sqlx::Error::Database(refusal) if is_disk_error => Self::DiskFailed {
                action: action.to_owned(),
                reason: refusal.message().to_owned(),
            },
            _ => Self::of(action, error),
        }
    }

    /// A time-out.
    pub(crate) fn too_slow(action: &'static str) -> Self {
        Self::Unavailable {
            action: action.to_owned(),
            source: Box::new(Cause("no answer in time".to_owned())),
        }
    }
}

/// The engine's message in one line. Its own error types show rows in their `Debug`, and rows contain secrets.
struct Cause(String);

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cause({:?})", self.0)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Cause {}

/// Says whether the connection failed, not the statement.
pub(crate) fn is_transient(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::BeginFailed => true,
        sqlx::Error::Database(refusal) => refusal.code().is_some_and(|code| {
            // Class 08: connection; 53300: too many connections; 57P…: the server stops or starts; 25006: it is a standby now.
            code.starts_with("08")
                || matches!(&*code, "53300" | "57P01" | "57P02" | "57P03" | "25006")
                || is_busy_code(&code)
        }),
        _ => false,
    }
}

/// Says whether the engine aborted a statement because of the locks of another one, so that it can be repeated.
pub(crate) fn is_collision(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(refusal) = error else {
        return false;
    };
    refusal
        .code()
        .is_some_and(|code| matches!(&*code, "40001" | "40P01"))
}

/// Says whether SQLite found the file locked for longer than its busy timeout.
pub(crate) fn is_busy(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(refusal) = error else {
        return false;
    };
    refusal.code().is_some_and(|code| is_busy_code(&code))
}

/// Says whether a failed statement leaves a SQLite connection in an unknown state. A constraint or a lock does not.
pub(crate) fn leaves_connection_in_doubt(error: &sqlx::Error) -> bool {
    !matches!(sqlite_code(error), Some(BUSY | LOCKED | CONSTRAINT))
}

/// Says whether PostgreSQL's disk is full.
fn is_disk_full(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(refusal) = error else {
        return false;
    };
    refusal.code().is_some_and(|code| code == "53100")
}

/// Whether the index `sandboxes_alias` refused a row: both databases name it, or its columns.
fn is_alias_taken(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(refusal) = error else {
        return false;
    };
    let message = refusal.message();
    refusal.is_unique_violation() && message.contains("sandboxes") && message.contains("alias")
}

fn is_busy_code(code: &str) -> bool {
    matches!(primary_code(code), Some(BUSY | LOCKED))
}

// Result codes of SQLite.
const BUSY: u32 = 5;
const LOCKED: u32 = 6;
const READONLY: u32 = 8;
const IOERR: u32 = 10;
const CORRUPT: u32 = 11;
const FULL: u32 = 13;
const CANTOPEN: u32 = 14;
const CONSTRAINT: u32 = 19;
const NOTADB: u32 = 26;

fn sqlite_code(error: &sqlx::Error) -> Option<u32> {
    let sqlx::Error::Database(refusal) = error else {
        return None;
    };
    primary_code(&refusal.code()?)
}

/// SQLite's primary result code; none for PostgreSQL, whose codes have five characters.
fn primary_code(code: &str) -> Option<u32> {
    let is_sqlite = code.len() < 5;
    let code = code.parse::<u32>().ok().filter(|_| is_sqlite)?;
    Some(code & 0xff)
}
