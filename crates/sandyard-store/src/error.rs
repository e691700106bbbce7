//! Failures of the store.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::disk;

/// Result of a store's work.
pub type StoreResult<T> = Result<T, StoreError>;

/// Why the store failed. «Not found» is never an error here.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The database cannot be reached, or the connection broke; trying again may help.
    #[error("the database cannot be reached: {action}")]
    Unavailable {
        /// What was being done.
        action: String,
        /// Why not.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The disk of the database is full. The database works again as soon as there is room.
    #[error("the disk of the database is full: {action}")]
    Full {
        /// What was being done.
        action: String,
        /// Where the database file is and how many bytes are free there; none for PostgreSQL.
        disk: Option<(PathBuf, u64)>,
        /// What the database said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The disk of the database fails or is read-only. The database works again as soon as the disk does.
    #[error("the disk of the database fails: {reason}: {action}")]
    DiskFailed {
        /// What was being done.
        action: String,
        /// SQLite's description: `disk I/O error`, `attempt to write a readonly database`, ….
        reason: String,
    },
    /// The database refused.
    #[error("the database refused: {action}")]
    Refused {
        /// What was being done.
        action: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A row holds what this version does not understand.
    #[error("cannot understand a row of `{table}`: {detail}")]
    Corrupt {
        /// Which table.
        table: &'static str,
        /// What is wrong.
        detail: String,
    },
    /// The URL or file of the database makes no sense.
    #[error("`{url}` is no database: {detail}")]
    BadUrl {
        /// What was given, without its password.
        url: String,
        /// What is wrong.
        detail: String,
    },
    /// The cursor of a list was not made by this store.
    #[error("`{cursor}` is no cursor")]
    BadCursor {
        /// What was given.
        cursor: String,
    },
    /// A newer Sandyard has changed the tables; this one would harm them.
    #[error(
        "the database has tables of version {found}, this Sandyard knows version {known}: run a newer Sandyard, or restore an older database"
    )]
    TooNew {
        /// Version of the tables.
        found: i64,
        /// The newest version this program knows.
        known: i64,
    },
}

impl StoreError {
    /// The same failure of `sqlx`, sorted into «try again» and «no».
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
        } else {
            Self::Refused { action, source }
        }
    }

    /// Says whether the same request may succeed later: the store cannot be reached, or its disk is full or fails.
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
        // A device that fails shows pages of zeros, too, which look like a database that is damaged.
        let is_disk_error = matches!(code, READONLY | IOERR | CORRUPT | CANTOPEN | NOTADB)
            || error.to_string().contains("no such table");
        let directory = database.parent().unwrap_or(database);
        // SQLite calls a full disk an I/O error where it maps the file, and a file it cannot open where it makes one.
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

    /// An answer that did not come in time.
    pub(crate) fn too_slow(action: &'static str) -> Self {
        Self::Unavailable {
            action: action.to_owned(),
            source: Box::new(Cause("no answer in time".to_owned())),
        }
    }
}

/// What the engine said, in one line. Its own error types show rows in their `Debug`, and rows hold secrets.
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

/// Says whether the connection is to blame and not the statement.
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
            // Class 08: connection; 53300: too many of them; 57P…: the server stops or starts; 25006: it is a standby now.
            code.starts_with("08")
                || matches!(&*code, "53300" | "57P01" | "57P02" | "57P03" | "25006")
                || is_busy_code(&code)
        }),
        _ => false,
    }
}

/// Says whether the engine undid one statement because of another's locks, so that it may simply be said again.
pub(crate) fn is_collision(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(refusal) = error else {
        return false;
    };
    refusal
        .code()
        .is_some_and(|code| matches!(&*code, "40001" | "40P01"))
}

/// Says whether SQLite found the file locked, for longer than it is told to wait.
pub(crate) fn is_busy(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(refusal) = error else {
        return false;
    };
    refusal.code().is_some_and(|code| is_busy_code(&code))
}

/// Says whether a failed statement leaves a SQLite connection in a state that nobody knows. A constraint or a lock does not.
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

/// SQLite's code without its extension; PostgreSQL's codes have five characters.
fn primary_code(code: &str) -> Option<u32> {
    let is_sqlite = code.len() < 5;
    let code = code.parse::<u32>().ok().filter(|_| is_sqlite)?;
    Some(code & 0xff)
}
