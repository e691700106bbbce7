//! The files of one sandbox's log: `<first line>-<number>.log`, a few MiB each, append-only, the oldest removed first.
//!
//! Several servers may share a data directory. A writer holds the folder's lock, and reads the end of the log again if another server
//! wrote last.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

use super::record::{OpenCommand, Record};

/// The name of a new file until the open commands are written to it.
const UNFINISHED: &str = "new";

/// One file of a log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Segment {
    /// Number of its first line.
    pub(super) first_seq: u64,
    /// Counts up, so that files without a line have unique names.
    index: u64,
}

impl Segment {
    fn parse(name: &str) -> Option<Self> {
        let (first_seq, index) = name.strip_suffix(".log")?.split_once('-')?;
        Some(Self {
            first_seq: first_seq.parse().ok()?,
            index: index.parse().ok()?,
        })
    }

    pub(super) fn path(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{:020}-{:010}.log", self.first_seq, self.index))
    }
}

/// Lists the files of a log, oldest first. A missing folder has none.
pub(super) fn segments(folder: &Path) -> io::Result<Vec<Segment>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        found.extend(entry?.file_name().to_str().and_then(Segment::parse));
    }
    found.sort_unstable();
    Ok(found)
}

/// Reads a file from an offset to its end.
pub(super) fn read_segment(path: &Path, offset: u64) -> io::Result<Vec<u8>> {
    use std::io::Seek;
    let mut file = File::open(path)?;
    file.seek(io::SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The lock of a log folder.
#[derive(Debug)]
pub(super) struct FolderLock(File);

impl FolderLock {
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(folder.join("lock"))?;
        Ok(Self(file))
    }

    /// Runs `work` under the lock. Its argument says whether `writer` was the last one to write.
    pub(super) fn hold<T>(
        &self,
        writer: &str,
        work: impl FnOnce(bool) -> io::Result<T>,
    ) -> io::Result<T> {
        rustix::fs::flock(&self.0, FlockOperation::LockExclusive)?;
        let result = (|| {
            let mut last = [0; 128];
            let count = self.0.read_at(&mut last, 0)?;
            let is_last = &last[..count] == writer.as_bytes();
            if !is_last {
                self.0.set_len(0)?;
                self.0.write_all_at(writer.as_bytes(), 0)?;
            }
            work(is_last)
        })();
        rustix::fs::flock(&self.0, FlockOperation::Unlock)?;
        result
    }
}

/// The maximum size of a log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Bytes of one file.
    pub(super) segment: u64,
    /// Bytes of all files of a sandbox.
    pub(super) total: u64,
}

impl Bounds {
    pub(super) fn of_total(total: u64) -> Self {
        Self {
            segment: (total / 16).clamp(64 << 10, 4 << 20),
            total,
        }
    }
}

/// A log that is being written.
#[derive(Debug)]
pub(super) struct LogFiles {
    folder: PathBuf,
    lock: FolderLock,
    bounds: Bounds,
    end: Option<End>,
}

/// The end of a log.
#[derive(Debug)]
struct End {
    segment: Segment,
    file: File,
    size: u64,
    next_seq: u64,
    open: BTreeMap<String, OpenCommand>,
}

impl LogFiles {
    pub(super) fn open(folder: &Path, bounds: Bounds) -> io::Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        Ok(Self {
            folder: folder.to_owned(),
            lock: FolderLock::open(folder)?,
            bounds,
            end: None,
        })
    }

    /// Appends records and numbers their lines: all of them, or none if it fails.
    pub(super) fn append(&mut self, writer: &str, records: &mut [Record]) -> io::Result<()> {
        let Self {
            folder,
            lock,
            bounds,
            end,
        } = self;
        let result = lock.hold(writer, |is_last| {
            if !is_last || end.is_none() {
                *end = Some(End::find(folder)?);
            }
            let Some(current) = end else {
                return Err(io::Error::other("the end of the log is unknown"));
            };
            if current.size >= bounds.segment {
                current.rotate(folder)?;
                remove_oldest(folder, bounds.total)?;
            }
            current.append(records)
        });
        if result.is_err() {
            // The content of the file is not certain any more.
            self.end = None;
        }
        result
    }

    /// The commands whose end is not recorded.
    pub(super) fn open_commands(&mut self, writer: &str) -> io::Result<Vec<OpenCommand>> {
        let Self {
            folder, lock, end, ..
        } = self;
        lock.hold(writer, |is_last| {
            if !is_last || end.is_none() {
                *end = Some(End::find(folder)?);
            }
            let open = end.iter().flat_map(|end| end.open.values().cloned());
            Ok(open.collect())
        })
    }
}

impl End {
    /// Finds the end of a log, and cuts off a record that was written in part.
    fn find(folder: &Path) -> io::Result<Self> {
        let Some(segment) = segments(folder)?.pop() else {
            let segment = Segment {
                first_seq: 1,
                index: 1,
            };
            return Self::create(folder, segment, BTreeMap::new());
        };
        let path = segment.path(folder);
        let bytes = read_segment(&path, 0)?;
        let mut next_seq = segment.first_seq;
        let mut open = BTreeMap::new();
        let mut size = 0;
        while let Some((record, length)) = Record::decode(&bytes[size..]) {
            size += length;
            track(&record, &mut open);
            if let Record::Lines(lines) = record {
                next_seq = lines.seq + u64::from(lines.count);
            }
        }
        let file = OpenOptions::new().append(true).open(&path)?;
        if size < bytes.len() {
            file.set_len(size as u64)?;
        }
        Ok(Self {
            segment,
            file,
            size: size as u64,
            next_seq,
            open,
        })
    }

    /// Creates a file that begins with the open commands.
    fn create(
        folder: &Path,
        segment: Segment,
        open: BTreeMap<String, OpenCommand>,
    ) -> io::Result<Self> {
        // It is renamed when it is complete, because open commands are read from the newest file.
        let unfinished = folder.join(UNFINISHED);
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&unfinished)?;
        let mut bytes = Vec::new();
        for command in open.values() {
            Record::CommandOpened(command.clone()).encode(&mut bytes);
        }
        // A file that an earlier attempt left is overwritten.
        file.set_len(0)?;
        (&file).write_all(&bytes)?;
        std::fs::rename(&unfinished, segment.path(folder))?;
        Ok(Self {
            next_seq: segment.first_seq,
            segment,
            file,
            size: bytes.len() as u64,
            open,
        })
    }

    fn rotate(&mut self, folder: &Path) -> io::Result<()> {
        let segment = Segment {
            first_seq: self.next_seq,
            index: self.segment.index + 1,
        };
        *self = Self::create(folder, segment, self.open.clone())?;
        Ok(())
    }

    fn append(&mut self, records: &mut [Record]) -> io::Result<()> {
        let mut bytes = Vec::new();
        let mut next_seq = self.next_seq;
        for record in records.iter_mut() {
            if let Record::Lines(lines) = record {
                lines.seq = next_seq;
                next_seq += u64::from(lines.count);
            }
            record.encode(&mut bytes);
        }
        if let Err(error) = self.file.write_all(&bytes) {
            // The disk is full: the next writer must not find half of it.
            self.file.set_len(self.size)?;
            return Err(error);
        }
        self.size += bytes.len() as u64;
        self.next_seq = next_seq;
        for record in records.iter() {
            track(record, &mut self.open);
        }
        Ok(())
    }
}

/// Updates the open commands.
fn track(record: &Record, open: &mut BTreeMap<String, OpenCommand>) {
    match record {
        Record::CommandOpened(command) => {
            open.insert(command.id.clone(), command.clone());
        }
        Record::CommandClosed(id) => {
            open.remove(id);
        }
        Record::Lines(lines) => {
            if let Some(command) = open.get_mut(&lines.command)
                && let Some(recorded) = command.recorded.get_mut(usize::from(lines.source))
            {
                *recorded = lines.end;
                command.resume = lines.resume;
            }
        }
    }
}

/// Removes the oldest files until the rest is within a bound. The newest one stays. The caller holds the lock.
pub(super) fn remove_oldest(folder: &Path, bound: u64) -> io::Result<()> {
    let mut all = Vec::new();
    for segment in segments(folder)? {
        let path = segment.path(folder);
        let size = std::fs::metadata(&path)?.len();
        all.push((path, size));
    }
    let mut total: u64 = all.iter().map(|(_, size)| size).sum();
    all.pop();
    for (path, size) in all {
        if total <= bound {
            break;
        }
        std::fs::remove_file(path)?;
        total -= size;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::reader::LogCursor;
    use super::super::record::Lines;
    use super::*;

    fn lines(text: &str) -> Record {
        Record::Lines(Lines {
            count: text.matches('\n').count() as u32,
            text: text.as_bytes().to_vec(),
            command: "a".to_owned(),
            ..Lines::default()
        })
    }

    fn texts(folder: &Path) -> Vec<String> {
        let mut cursor = LogCursor::after(0);
        let page = cursor.read(folder, usize::MAX, usize::MAX).unwrap();
        let seqs: Vec<u64> = page.entries.iter().map(|entry| entry.seq).collect();
        assert!(
            seqs.windows(2).all(|pair| pair[1] == pair[0] + 1),
            "{seqs:?}"
        );
        page.entries.into_iter().map(|entry| entry.text).collect()
    }

    const BOUNDS: Bounds = Bounds {
        segment: 2000,
        total: 10_000,
    };

    #[test]
    fn a_partial_record_is_cut_off_and_the_log_continues() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let mut files = LogFiles::open(folder, BOUNDS).unwrap();
        files.append("one", &mut [lines("a\nb\n")]).unwrap();
        files.append("one", &mut [lines("c\n")]).unwrap();
        let path = segments(folder).unwrap()[0].path(folder);
        let whole = std::fs::read(&path).unwrap();
        for cut in 1..20 {
            std::fs::write(&path, &whole[..whole.len() - cut]).unwrap();
            assert_eq!(texts(folder), ["a", "b"], "{cut} bytes short");
        }
        // Another server goes on.
        let mut files = LogFiles::open(folder, BOUNDS).unwrap();
        files.append("two", &mut [lines("d\n")]).unwrap();
        assert_eq!(texts(folder), ["a", "b", "d"]);
    }

    #[test]
    fn a_new_file_that_cannot_be_written_forgets_no_open_command() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let mut files = LogFiles::open(folder, BOUNDS).unwrap();
        let command = OpenCommand {
            id: "a".to_owned(),
            ..OpenCommand::default()
        };
        let long = lines(&"x\n".repeat(1000));
        files
            .append("one", &mut [Record::CommandOpened(command), long])
            .unwrap();
        // As a server leaves it that was killed before it had written the new file.
        std::fs::write(folder.join(UNFINISHED), "").unwrap();
        let open = |writer| {
            let mut files = LogFiles::open(folder, BOUNDS).unwrap();
            files.open_commands(writer).unwrap().len()
        };
        assert_eq!(open("two"), 1);
        std::fs::remove_file(folder.join(UNFINISHED)).unwrap();
        // A disk without room for it: no write succeeds.
        std::fs::create_dir(folder.join(UNFINISHED)).unwrap();
        files.append("one", &mut [lines("y\n")]).unwrap_err();
        assert_eq!((open("two"), segments(folder).unwrap().len()), (1, 1));
        std::fs::remove_dir(folder.join(UNFINISHED)).unwrap();
        files.append("one", &mut [lines("y\n")]).unwrap();
        assert_eq!((open("two"), segments(folder).unwrap().len()), (1, 2));
    }

    #[test]
    fn two_writers_take_turns() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let mut one = LogFiles::open(folder, BOUNDS).unwrap();
        let mut two = LogFiles::open(folder, BOUNDS).unwrap();
        let mut expected = Vec::new();
        for number in 0..200 {
            let (files, name) = if number % 3 == 0 {
                (&mut one, "one")
            } else {
                (&mut two, "two")
            };
            files
                .append(name, &mut [lines(&format!("{number}\n"))])
                .unwrap();
            expected.push(number.to_string());
        }
        assert!(segments(folder).unwrap().len() > 3);
        assert!(expected.ends_with(&texts(folder)));
    }

    #[test]
    fn the_oldest_file_is_removed_first_and_open_commands_stay() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let mut files = LogFiles::open(folder, BOUNDS).unwrap();
        let command = OpenCommand {
            id: "a".to_owned(),
            pid: 7,
            ..OpenCommand::default()
        };
        files
            .append("one", &mut [Record::CommandOpened(command)])
            .unwrap();
        for number in 0..1000 {
            let Record::Lines(mut record) = lines(&format!("line {number}\n")) else {
                unreachable!()
            };
            (record.end, record.resume) = (number + 1, number);
            files.append("one", &mut [Record::Lines(record)]).unwrap();
        }
        let texts = texts(folder);
        assert_eq!(texts.last().unwrap(), "line 999");
        assert!((20..200).contains(&texts.len()), "{}", texts.len());
        let size: u64 = segments(folder)
            .unwrap()
            .iter()
            .map(|segment| segment.path(folder).metadata().unwrap().len())
            .sum();
        assert!(size <= BOUNDS.total + 2 * BOUNDS.segment, "{size}");
        let page = LogCursor::after(0).read(folder, 1, usize::MAX).unwrap();
        assert_eq!(page.entries[0].seq, page.dropped + 1);
        let open = LogFiles::open(folder, BOUNDS)
            .unwrap()
            .open_commands("two")
            .unwrap();
        assert_eq!(
            (open[0].pid, open[0].recorded, open[0].resume),
            (7, [1000, 0], 999)
        );
        files
            .append("one", &mut [Record::CommandClosed("a".to_owned())])
            .unwrap();
        assert!(files.open_commands("one").unwrap().is_empty());
    }
}
