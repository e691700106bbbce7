//! A file or folder as this dialect shows it, parsed from the output of `find`.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

/// Output format of `find` for each entry: fields that end with a NUL, which no name contains.
pub(super) const FORMAT: &str = r"%y\0%s\0%m\0%U\0%G\0%A@\0%T@\0%C@\0%l\0%P\0";
/// Number of fields of an entry.
pub(super) const FIELDS: usize = 10;

/// Kind of an entry of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum E2bVolumeEntryType {
    /// A regular file.
    File,
    /// A folder.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A device, socket or pipe.
    Unknown,
}

/// File, directory or symbolic link of a volume.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(super) struct E2bVolumeEntry {
    /// Last component of the path.
    pub(super) name: String,
    /// Kind of entry.
    #[serde(rename = "type")]
    pub(super) kind: E2bVolumeEntryType,
    /// Path inside the volume, from its root.
    pub(super) path: String,
    /// Size in bytes.
    pub(super) size: u64,
    /// Permission bits as a decimal number.
    pub(super) mode: u32,
    /// User ID of the owner.
    pub(super) uid: u32,
    /// Group ID.
    pub(super) gid: u32,
    /// Time of the last access (RFC 3339).
    atime: String,
    /// Time at which the content last changed (RFC 3339).
    mtime: String,
    /// Time at which owner, permissions or content last changed (RFC 3339).
    ctime: String,
    /// Target of a symbolic link; null for other entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
}

/// Parses the output of `find` for `start` and the entries below it; none if it is malformed.
pub(super) fn read_all(start: &str, printed: &[u8]) -> Option<Vec<E2bVolumeEntry>> {
    let Some(printed) = printed.strip_suffix(b"\0") else {
        return printed.is_empty().then(Vec::new);
    };
    let fields: Vec<&[u8]> = printed.split(|byte| *byte == 0).collect();
    if !fields.len().is_multiple_of(FIELDS) {
        return None;
    }
    fields
        .chunks(FIELDS)
        .map(|fields| read(start, fields))
        .collect()
}

fn read(start: &str, fields: &[&[u8]]) -> Option<E2bVolumeEntry> {
    let text = |at: usize| String::from_utf8_lossy(fields[at]).into_owned();
    let number = |at: usize| text(at).parse::<u32>().ok();
    let kind = match fields[0] {
        b"f" => E2bVolumeEntryType::File,
        b"d" => E2bVolumeEntryType::Directory,
        b"l" => E2bVolumeEntryType::Symlink,
        _ => E2bVolumeEntryType::Unknown,
    };
    let path = below(start, &text(9));
    Some(E2bVolumeEntry {
        name: name(&path).to_owned(),
        kind,
        size: text(1).parse().ok()?,
        mode: u32::from_str_radix(&text(2), 8).ok()?,
        uid: number(3)?,
        gid: number(4)?,
        atime: time(&text(5))?,
        mtime: time(&text(6))?,
        ctime: time(&text(7))?,
        target: (kind == E2bVolumeEntryType::Symlink).then(|| text(8)),
        path,
    })
}

fn below(start: &str, rest: &str) -> String {
    match (start, rest) {
        (start, "") => start.to_owned(),
        ("/", rest) => format!("/{rest}"),
        (start, rest) => format!("{start}/{rest}"),
    }
}

fn name(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some((_, name)) if !name.is_empty() => name,
        _ => path,
    }
}

/// Seconds since 1970 with a fraction, as RFC 3339.
fn time(text: &str) -> Option<String> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let micros: String = fraction.chars().chain("000000".chars()).take(6).collect();
    let nanos = micros.parse::<i32>().ok()?.checked_mul(1000)?;
    let seconds: i64 = seconds.parse().ok()?;
    // Files can have times outside the calendar.
    let at = Timestamp::new(seconds, if seconds < 0 { 0 } else { nanos }).unwrap_or_default();
    Some(format!("{at:.6}"))
}

/// Normalises a path: no `.`, `..` or doubled slashes, and nothing above the root.
pub(super) fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_the_root() {
        for (path, wanted) in [
            ("", "/"),
            ("/", "/"),
            ("a", "/a"),
            ("/a//b/", "/a/b"),
            ("/../../etc", "/etc"),
            ("/a/./../b", "/b"),
            ("-rf", "/-rf"),
            ("/a b\nc", "/a b\nc"),
        ] {
            assert_eq!(clean(path), wanted, "{path:?}");
        }
    }

    #[test]
    fn the_output_of_find_is_parsed() {
        let printed = b"d\x004096\x00755\x000\x000\x001700000000.5000000000\x001.0000000000\x00-5.25\x00\x00\x00\
            l\x003\x00777\x001000\x001001\x000.0\x000.0\x000.0\x00a\nb\x00x/new\nline\x00";
        let entries = read_all("/top", printed).unwrap();
        assert_eq!(entries.len(), 2);
        assert_eq!(
            (entries[0].name.as_str(), entries[0].path.as_str()),
            ("top", "/top")
        );
        assert_eq!(entries[0].kind, E2bVolumeEntryType::Directory);
        assert_eq!(entries[0].mode, 0o755);
        assert_eq!(entries[0].atime, "2023-11-14T22:13:20.500000Z");
        assert_eq!(entries[0].target, None);
        assert_eq!(entries[1].name, "new\nline");
        assert_eq!(entries[1].path, "/top/x/new\nline");
        assert_eq!((entries[1].uid, entries[1].gid), (1000, 1001));
        assert_eq!(entries[1].target.as_deref(), Some("a\nb"));
        assert_eq!(read_all("/", b"").unwrap(), []);
        for invalid in [
            &b"d"[..],
            b"d\x00",
            b"f\x00x\x00755\x000\x000\x000\x000\x000\x00\x00\x00",
        ] {
            assert_eq!(read_all("/", invalid), None);
        }
        let root = read_all("/", b"d\x001\x00755\x000\x000\x000\x000\x000\x00\x00\x00").unwrap();
        assert_eq!((root[0].name.as_str(), root[0].path.as_str()), ("/", "/"));
    }
}
