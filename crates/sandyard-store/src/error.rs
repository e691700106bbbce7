//! Failures of the store.

use std::fmt;

/// Result of a store's work.
pub type StoreResult<T> = Result<T, StoreError>;

/// Why the store failed. «Not found» is never an error here.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The database cannot be reached, or the connection broke; trying again may help.
    #[error("the database cannot be reached: {doing}")]
    Unavailable {
        /// What was being done.
        doing: String,
        /// Why not.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The database refused.
    #[error("the database refused: {doing}")]
    Refused {
        /// What was being done.
        doing: String,
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
    pub(crate) fn of(doing: &'static str, error: &sqlx::Error) -> Self {
        let source = Box::new(Cause(error.to_string()));
        let doing = doing.to_owned();
        if is_transient(error) {
            Self::Unavailable { doing, source }
        } else {
            Self::Refused { doing, source }
        }
    }

    /// An answer that did not come in time.
    pub(crate) fn too_slow(doing: &'static str) -> Self {
        Self::Unavailable {
            doing: doing.to_owned(),
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

/// `SQLITE_BUSY`, `SQLITE_LOCKED` and their extended codes; PostgreSQL's codes have five characters.
fn is_busy_code(code: &str) -> bool {
    code.len() < 5
        && code
            .parse::<u32>()
            .is_ok_and(|code| matches!(code & 0xff, 5 | 6))
}
