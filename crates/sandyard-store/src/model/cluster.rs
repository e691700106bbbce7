//! The servers that share this store.

/// One running server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name; new at every start.
    pub id: String,
    /// Where other nodes reach it.
    pub url: Option<String>,
    /// Which places it can reach.
    pub locations: Vec<String>,
    /// Its version.
    pub version: String,
    /// When it started.
    pub started_ms: i64,
    /// When it last said that it is there.
    pub seen_ms: i64,
}
