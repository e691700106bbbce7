//! Builds archives for tests, hostile ones too: headers are written as given, without another's checks.

use std::io::{Cursor, Write};

/// A tar archive being written.
#[derive(Default)]
pub(crate) struct Tar {
    bytes: Vec<u8>,
}

/// One header.
#[derive(Clone)]
pub(crate) struct Entry<'a> {
    pub(crate) path: &'a [u8],
    pub(crate) kind: u8,
    pub(crate) link: &'a [u8],
    pub(crate) data: &'a [u8],
    pub(crate) mode: u32,
    pub(crate) ids: (u64, u64),
}

impl Default for Entry<'_> {
    fn default() -> Self {
        Self {
            path: b"",
            kind: b'0',
            link: b"",
            data: b"",
            mode: 0o644,
            ids: (0, 0),
        }
    }
}

impl Tar {
    pub(crate) fn add(&mut self, entry: Entry<'_>) -> &mut Self {
        let mut header = tar::Header::new_gnu();
        let fill = |field: &mut [u8], bytes: &[u8]| {
            assert!(bytes.len() <= field.len(), "long names go through `pax`");
            field[..bytes.len()].copy_from_slice(bytes);
        };
        fill(&mut header.as_old_mut().name, entry.path);
        fill(&mut header.as_old_mut().linkname, entry.link);
        header.set_entry_type(tar::EntryType::new(entry.kind));
        header.set_mode(entry.mode);
        header.set_uid(entry.ids.0);
        header.set_gid(entry.ids.1);
        header.set_mtime(1_600_000_000);
        header.set_size(entry.data.len() as u64);
        header.set_cksum();
        self.bytes.extend_from_slice(header.as_bytes());
        self.bytes.extend_from_slice(entry.data);
        let filled = self.bytes.len().next_multiple_of(512);
        self.bytes.resize(filled, 0);
        self
    }

    pub(crate) fn file(&mut self, path: &str, data: &str) -> &mut Self {
        self.bytes(path, data.as_bytes())
    }

    pub(crate) fn bytes(&mut self, path: &str, data: &[u8]) -> &mut Self {
        self.add(Entry {
            path: path.as_bytes(),
            data,
            ..Entry::default()
        })
    }

    /// The archive with the entries of another one after its own.
    pub(crate) fn append(mut self, other: &Self) -> Self {
        self.bytes.extend_from_slice(&other.bytes);
        self
    }

    pub(crate) fn dir(&mut self, path: &str, mode: u32) -> &mut Self {
        self.add(Entry {
            path: path.as_bytes(),
            kind: b'5',
            mode,
            ..Entry::default()
        })
    }

    pub(crate) fn symlink(&mut self, path: &str, target: &str) -> &mut Self {
        self.add(Entry {
            path: path.as_bytes(),
            kind: b'2',
            link: target.as_bytes(),
            mode: 0o777,
            ..Entry::default()
        })
    }

    pub(crate) fn hard_link(&mut self, path: &str, target: &str) -> &mut Self {
        self.add(Entry {
            path: path.as_bytes(),
            kind: b'1',
            link: target.as_bytes(),
            ..Entry::default()
        })
    }

    /// An extended header for the next entry.
    pub(crate) fn pax(&mut self, records: &[(&str, &[u8])]) -> &mut Self {
        let mut data = Vec::new();
        for (key, value) in records {
            let rest = key.len() + value.len() + 3;
            let digits = |length: usize| length.to_string().len();
            let mut length = rest + digits(rest);
            if digits(length) != digits(rest) {
                length = rest + digits(length);
            }
            write!(data, "{length} {key}=").expect("write to memory");
            data.extend_from_slice(value);
            data.push(b'\n');
        }
        self.add(Entry {
            path: b"PaxHeaders/x",
            kind: b'x',
            data: &data,
            ..Entry::default()
        })
    }

    /// The archive with its end.
    pub(crate) fn finish(&self) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        bytes.resize(bytes.len() + 1024, 0);
        bytes
    }

    /// The archive cut off after what was added.
    pub(crate) fn unfinished(&self) -> Vec<u8> {
        self.bytes.clone()
    }
}

/// The archive as the import reads it.
pub(crate) fn reader(tar: &Tar) -> Cursor<Vec<u8>> {
    Cursor::new(tar.finish())
}
