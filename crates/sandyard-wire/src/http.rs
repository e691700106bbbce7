//! JSON of the plain HTTP routes. These are not protobuf: field names are literal, and no field is omitted.

use serde::{Deserialize, Serialize};

/// Body of a failed plain HTTP request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpError {
    /// The HTTP status.
    pub code: u16,
    /// Why the request failed, for people.
    pub message: String,
}

/// One file written by `POST /files`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenFile {
    /// Absolute path.
    pub path: String,
    /// Last component of the path.
    pub name: String,
    /// Always `file`.
    pub r#type: String,
}

/// Use of the sandbox's resources at one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Metrics {
    /// Seconds since 1970.
    pub ts: i64,
    /// Processors the sandbox may use.
    pub cpu_count: u32,
    /// Use of those processors since the last request, in percent.
    pub cpu_used_pct: f64,
    /// Memory limit in bytes.
    pub mem_total: u64,
    /// Memory used in bytes, without caches that the kernel can drop.
    pub mem_used: u64,
    /// Memory holding file contents that could be dropped, in bytes.
    pub mem_cache: u64,
    /// Disk used in bytes.
    pub disk_used: u64,
    /// Disk size in bytes.
    pub disk_total: u64,
}
