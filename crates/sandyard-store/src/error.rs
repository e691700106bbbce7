//! Failures of the store.

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
}
