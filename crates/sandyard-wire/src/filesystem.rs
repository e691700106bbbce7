//! Messages of `filesystem.Filesystem`.

use std::collections::BTreeMap;

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::json::{self, Empty, is_default, null_default, proto_enum};

proto_enum! {
    /// What kind of thing a path names.
    FileType {
        /// A regular file, or anything that is neither of the others.
        File = 1 "FILE_TYPE_FILE",
        /// A directory.
        Directory = 2 "FILE_TYPE_DIRECTORY",
        /// A symbolic link.
        Symlink = 3 "FILE_TYPE_SYMLINK",
    }
}

impl FileType {
    const UNSPECIFIED: &'static str = "FILE_TYPE_UNSPECIFIED";
}

proto_enum! {
    /// What happened to a watched file.
    EventType {
        /// It appeared.
        Create = 1 "EVENT_TYPE_CREATE",
        /// Its content changed.
        Write = 2 "EVENT_TYPE_WRITE",
        /// The file or directory was removed.
        Remove = 3 "EVENT_TYPE_REMOVE",
        /// It went to another name.
        Rename = 4 "EVENT_TYPE_RENAME",
        /// Its attributes changed.
        Chmod = 5 "EVENT_TYPE_CHMOD",
    }
}

impl EventType {
    const UNSPECIFIED: &'static str = "EVENT_TYPE_UNSPECIFIED";
}

/// What is known of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EntryInfo {
    /// Last component of the path.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_default")]
    pub name: String,
    /// Its kind; a symbolic link has the kind of its target, and none if that is missing.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_default")]
    pub r#type: FileType,
    /// Absolute path.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_default")]
    pub path: String,
    /// Bytes.
    #[serde(skip_serializing_if = "is_default", with = "json::int64")]
    pub size: i64,
    /// Permission bits.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "json::int")]
    pub mode: u32,
    /// Kind and permission bits in the notation of Go's `os.FileMode`.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_default")]
    pub permissions: String,
    /// Owner's name, or number where it has none.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_default")]
    pub owner: String,
    /// Group's name, or number where it has none.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_default")]
    pub group: String,
    /// Time of the last change of content, RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none", alias = "modified_time")]
    pub modified_time: Option<String>,
    /// Where a symbolic link leads.
    #[serde(skip_serializing_if = "Option::is_none", alias = "symlink_target")]
    pub symlink_target: Option<String>,
    /// Extended attributes of the name space `user.e2b.`, without that prefix.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_default")]
    pub metadata: BTreeMap<String, String>,
    /// Whether the path itself is a symbolic link.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_default")]
    #[serde(alias = "is_symlink")]
    pub is_symlink: bool,
}

/// A request about one path: `Stat`, `MakeDir`, `Remove`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PathRequest {
    /// The path; relative to the user's home.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_default")]
    pub path: String,
}

/// The answer of `Stat`, `MakeDir` and `Move`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EntryResponse {
    /// The file asked about, as it is now.
    #[serde(deserialize_with = "null_default")]
    pub entry: EntryInfo,
}

/// Gives a file another name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MoveRequest {
    /// The old name.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_default")]
    pub source: String,
    /// The new name.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_default")]
    pub destination: String,
}

/// Asks what a directory holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ListDirRequest {
    /// The directory.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_default")]
    pub path: String,
    /// How many levels deep; zero counts as one.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "json::int")]
    pub depth: u32,
}

/// What a directory holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ListDirResponse {
    /// The entries, a directory before what it holds.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "json::list")]
    pub entries: Vec<EntryInfo>,
}

/// Starts to watch a directory: `WatchDir` and `CreateWatcher`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WatchRequest {
    /// The directory.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_default")]
    pub path: String,
    /// Whether everything below it counts too.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_default")]
    pub recursive: bool,
    /// Whether each event carries what is known of the file.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_default")]
    #[serde(alias = "include_entry")]
    pub include_entry: bool,
    /// Whether to watch on a network mount, where changes made elsewhere go unseen.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_default")]
    #[serde(alias = "allow_network_mounts")]
    pub allow_network_mounts: bool,
}

/// One change of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FilesystemEvent {
    /// The file's path, relative to the watched directory.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_default")]
    pub name: String,
    /// What happened to it.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_default")]
    pub r#type: EventType,
    /// What is known of it, where asked for and where it still exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<EntryInfo>,
}

/// One message of the stream answering `WatchDir`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "messages live one at a time, and most are the large one"
)]
pub enum WatchDirResponse {
    /// First: changes are seen from here on.
    Start,
    /// A change.
    Filesystem(FilesystemEvent),
    /// Nothing; keeps the connection from looking dead.
    Keepalive,
    /// A message this version does not know, or none.
    #[default]
    Other,
}

impl Serialize for WatchDirResponse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::Start => map.serialize_entry("start", &Empty {})?,
            Self::Filesystem(event) => map.serialize_entry("filesystem", event)?,
            Self::Keepalive => map.serialize_entry("keepalive", &Empty {})?,
            Self::Other => {}
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for WatchDirResponse {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Raw {
            start: Option<Empty>,
            filesystem: Option<FilesystemEvent>,
            keepalive: Option<Empty>,
        }

        let raw = Raw::deserialize(deserializer)?;
        Ok(match (raw.filesystem, raw.start, raw.keepalive) {
            (Some(event), _, _) => Self::Filesystem(event),
            (None, Some(_), _) => Self::Start,
            (None, None, Some(_)) => Self::Keepalive,
            (None, None, None) => Self::Other,
        })
    }
}

/// Names a watcher: the answer of `CreateWatcher`, the request of `GetWatcherEvents` and `RemoveWatcher`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WatcherRef {
    /// The watcher.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_default")]
    #[serde(alias = "watcher_id")]
    pub watcher_id: String,
}

/// What a watcher saw since it was last asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WatcherEvents {
    /// In order.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "json::list")]
    pub events: Vec<FilesystemEvent>,
}
