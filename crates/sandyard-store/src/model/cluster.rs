//! The servers that share this store.

/// One running server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its id, new at every start.
    pub id: String,
    /// The URL at which other nodes reach it.
    pub url: Option<String>,
    /// The locations that it reaches.
    pub locations: Vec<String>,
    /// Its version.
    pub version: String,
    /// When it started.
    pub started_ms: i64,
    /// When it sent its last heartbeat.
    pub seen_ms: i64,
}
