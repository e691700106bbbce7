//! Reads a tar archive entry by entry, in bounded memory whatever its headers claim.
//!
//! Takes POSIX (ustar, pax) and GNU archives, with long names and sparse files. Written for this because the usual
//! reader keeps extended headers of any size in memory.

use std::io::{self, ErrorKind, Read};

use super::header::{self, BLOCK, Extent, Header};
use super::pax::{self, Extended};
use crate::error::{Result, TemplateError};
use crate::tree::MAX_PATH_BYTES;

/// Most bytes of one extended header: room for the attributes of any real file.
const MAX_EXTENDED_BYTES: u64 = 4 << 20;
/// Bytes read after the end of the archive, so that a decompressor sees the end and checks its sums.
const MAX_TRAILING_BYTES: u64 = 1 << 20;

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    File,
    Directory,
    Symlink,
    HardLink,
    Fifo,
    Device,
    Unknown,
}

/// An entry without its data.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// As in the archive: anything at all.
    pub(super) path: Vec<u8>,
    pub(super) kind: EntryKind,
    /// Target of links, as in the archive.
    pub(super) link: Vec<u8>,
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) mtime: (i64, i64),
    /// Size of the file once unpacked.
    pub(super) size: u64,
    /// Where the data goes, if not all of the file is data.
    pub(super) sparse: Option<Vec<Extent>>,
    pub(super) xattrs: Vec<(Vec<u8>, Vec<u8>)>,
}

/// An archive being read.
pub(super) struct Archive<R> {
    reader: R,
    /// Data of the current entry not yet read.
    remaining: u64,
    /// Bytes after the data up to the next block.
    padding: u64,
    global: Extended,
    first: bool,
}

impl<R: Read> Archive<R> {
    pub(super) fn new(reader: R) -> Self {
        Self {
            reader,
            remaining: 0,
            padding: 0,
            global: Extended::default(),
            first: true,
        }
    }

    /// The next entry; its data is then read with [`Archive::read_data`], as much as wanted.
    pub(super) fn next(&mut self) -> Result<Option<Entry>> {
        let mut extended = self.global.clone();
        loop {
            self.skip_rest()?;
            let mut block = [0; BLOCK];
            if !self.read_block(&mut block)? {
                if self.first {
                    return Err(TemplateError::archive("it is empty"));
                }
                return Ok(None);
            }
            let Some(header) = Header::parse(&block)? else {
                self.drain()?;
                return Ok(None);
            };
            self.first = false;
            let stored = header.size()?;
            match header.kind() {
                b'x' | b'X' => extended.add(&self.read_extended(stored)?)?,
                b'g' => {
                    let records = self.read_extended(stored)?;
                    self.global.add(&records)?;
                    extended = self.global.clone();
                }
                b'L' => extended.path = Some(self.read_long_name(stored)?),
                b'K' => extended.link = Some(self.read_long_name(stored)?),
                // A volume's label: nothing to unpack.
                b'V' => self.set_data(0),
                b'M' => return Err(TemplateError::archive("it is one of several volumes")),
                kind => return self.entry(&header, kind, stored, extended).map(Some),
            }
        }
    }

    fn entry(
        &mut self,
        header: &Header<'_>,
        kind: u8,
        stored: u64,
        extended: Extended,
    ) -> Result<Entry> {
        let path = extended.sparse.name.clone().or(extended.path);
        let path = path.unwrap_or_else(|| header.path());
        let kind = match kind {
            // Before POSIX, directories were files whose names ended in a slash.
            0 | b'0' | b'7' if path.ends_with(b"/") => EntryKind::Directory,
            0 | b'0' | b'7' | b'S' => EntryKind::File,
            b'1' => EntryKind::HardLink,
            b'2' => EntryKind::Symlink,
            b'3' | b'4' => EntryKind::Device,
            b'5' | b'D' => EntryKind::Directory,
            b'6' => EntryKind::Fifo,
            _ => EntryKind::Unknown,
        };
        // POSIX lets hard links carry data; GNU and others write none and still state the size.
        let has_data =
            matches!(kind, EntryKind::File | EntryKind::Unknown) || header.kind() == b'D';
        let stored = if has_data {
            extended.size.unwrap_or(stored)
        } else {
            0
        };
        self.set_data(stored);
        let mut entry = Entry {
            path,
            kind,
            link: extended.link.unwrap_or_else(|| header.link()),
            mode: header.mode()?,
            uid: extended
                .uid
                .map_or(header.uid()?, |id| u32::try_from(id).unwrap_or(u32::MAX)),
            gid: extended
                .gid
                .map_or(header.gid()?, |id| u32::try_from(id).unwrap_or(u32::MAX)),
            mtime: extended.mtime.unwrap_or((header.mtime()?, 0)),
            size: stored,
            sparse: None,
            xattrs: extended.xattrs,
        };
        if kind == EntryKind::File {
            if header.kind() == b'S' {
                entry.sparse = Some(self.gnu_map(header)?);
                entry.size = header.gnu_real_size()?;
            } else if extended.sparse.major == Some(1) {
                entry.sparse = Some(self.map_in_data()?);
                entry.size = extended.sparse.real_size.unwrap_or(stored);
            } else if let Some(map) = extended.sparse.map {
                entry.sparse = Some(map);
                entry.size = extended.sparse.real_size.unwrap_or(stored);
            }
        }
        check(&entry, self.remaining)?;
        Ok(entry)
    }

    /// Reads data of the current entry; 0 at its end.
    pub(super) fn read_data(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let want = buffer
            .len()
            .min(usize::try_from(self.remaining).unwrap_or(usize::MAX));
        if want == 0 {
            return Ok(0);
        }
        let count = self.read_some(&mut buffer[..want])?;
        if count == 0 {
            return Err(ends_early());
        }
        self.remaining -= count as u64;
        Ok(count)
    }

    fn set_data(&mut self, size: u64) {
        self.remaining = size;
        self.padding = (BLOCK as u64 - size % BLOCK as u64) % BLOCK as u64;
    }

    fn read_extended(&mut self, size: u64) -> Result<Vec<u8>> {
        if size > MAX_EXTENDED_BYTES {
            return Err(TemplateError::archive("an extended header is too large"));
        }
        self.set_data(size);
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
        self.read_all_data(&mut bytes)?;
        Ok(bytes)
    }

    fn read_long_name(&mut self, size: u64) -> Result<Vec<u8>> {
        let mut name = self.read_extended(size)?;
        let end = name.iter().position(|byte| *byte == 0);
        name.truncate(end.unwrap_or(name.len()));
        Ok(name)
    }

    fn read_all_data(&mut self, mut bytes: &mut [u8]) -> Result<()> {
        while !bytes.is_empty() {
            match self.read_data(bytes)? {
                0 => return Err(ends_early()),
                count => bytes = &mut bytes[count..],
            }
        }
        Ok(())
    }

    fn gnu_map(&mut self, header: &Header<'_>) -> Result<Vec<Extent>> {
        let mut extents = Vec::new();
        let mut more = header.gnu_extents(&mut extents)?;
        while more {
            let mut block = [0; BLOCK];
            if !self.read_block(&mut block)? || extents.len() > pax::MAX_EXTENTS {
                return Err(TemplateError::archive("a sparse map is damaged"));
            }
            more = header::more_gnu_extents(&block, &mut extents)?;
        }
        Ok(extents)
    }

    /// The map before the data: decimal numbers, a line each, the first their count; padded to whole blocks.
    fn map_in_data(&mut self) -> Result<Vec<Extent>> {
        let bad = || TemplateError::archive("a sparse map is damaged");
        let mut text = Vec::new();
        let mut numbers: Vec<u64> = Vec::new();
        let mut expected = 1;
        let mut block = [0; BLOCK];
        while numbers.len() < expected {
            self.read_all_data(&mut block)?;
            for byte in block {
                if numbers.len() >= expected {
                    break;
                }
                if byte != b'\n' {
                    text.push(byte);
                    if text.len() > 20 {
                        return Err(bad());
                    }
                    continue;
                }
                numbers.push(pax::decimal(&text)?);
                text.clear();
                if numbers.len() == 1 {
                    let count = usize::try_from(numbers[0]).map_err(|_| bad())?;
                    if count > pax::MAX_EXTENTS {
                        return Err(bad());
                    }
                    expected = 1 + 2 * count;
                }
            }
        }
        let pairs = numbers[1..].chunks_exact(2);
        Ok(pairs
            .map(|pair| Extent {
                offset: pair[0],
                length: pair[1],
            })
            .collect())
    }

    fn skip_rest(&mut self) -> Result<()> {
        let mut rest = self.remaining + self.padding;
        let mut sink = [0; 16 << 10];
        while rest > 0 {
            let want = sink.len().min(usize::try_from(rest).unwrap_or(usize::MAX));
            let count = self.read_some(&mut sink[..want])?;
            if count == 0 {
                // Some writers end without filling the last block.
                if rest <= self.padding {
                    break;
                }
                return Err(ends_early());
            }
            rest -= count as u64;
        }
        (self.remaining, self.padding) = (0, 0);
        Ok(())
    }

    /// False at the clean end of the stream.
    fn read_block(&mut self, block: &mut [u8; BLOCK]) -> Result<bool> {
        let mut filled = 0;
        while filled < BLOCK {
            match self.read_some(&mut block[filled..])? {
                0 if filled == 0 => return Ok(false),
                0 => return Err(ends_early()),
                count => filled += count,
            }
        }
        Ok(true)
    }

    fn drain(&mut self) -> Result<()> {
        let mut rest = (&mut self.reader).take(MAX_TRAILING_BYTES);
        io::copy(&mut rest, &mut io::sink()).map_err(read_error)?;
        Ok(())
    }

    fn read_some(&mut self, buffer: &mut [u8]) -> Result<usize> {
        loop {
            match self.reader.read(buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => return other.map_err(read_error),
            }
        }
    }
}

fn check(entry: &Entry, stored: u64) -> Result<()> {
    if entry.path.len() > MAX_PATH_BYTES || entry.link.len() > MAX_PATH_BYTES {
        return Err(TemplateError::archive("a name is too long"));
    }
    let Some(extents) = &entry.sparse else {
        return Ok(());
    };
    let (mut end, mut data) = (0_u64, 0_u64);
    for extent in extents {
        let next = extent.offset.checked_add(extent.length);
        match next {
            Some(next) if extent.offset >= end && next <= entry.size => end = next,
            _ => return Err(TemplateError::archive("a sparse map is damaged")),
        }
        data += extent.length;
    }
    if data > stored {
        return Err(TemplateError::archive(
            "a sparse file has less data than its map",
        ));
    }
    Ok(())
}

fn ends_early() -> TemplateError {
    TemplateError::archive("it ends in the middle of an entry")
}

/// Decompressors report damage as errors of reading; those are the archive's fault, not the system's.
pub(super) fn read_error(error: io::Error) -> TemplateError {
    match error.kind() {
        ErrorKind::InvalidData
        | ErrorKind::InvalidInput
        | ErrorKind::UnexpectedEof
        | ErrorKind::Other
        | ErrorKind::OutOfMemory
        | ErrorKind::Unsupported => TemplateError::archive(error.to_string()),
        _ => TemplateError::Io {
            action: "read the archive".to_owned(),
            source: error,
        },
    }
}
