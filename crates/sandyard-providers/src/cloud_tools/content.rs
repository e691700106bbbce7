//! Bytes of a file that is kept open: whatever its name stands for later, they are those that were there.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::try_unfold;

/// Bytes that are read at a time.
const PIECE: u64 = 256 << 10;

/// The file.
#[derive(Debug)]
pub(super) struct Content {
    file: File,
    size: u64,
    /// When it was written, in seconds and billionths of one.
    written: (i64, i64),
}

impl Content {
    /// That of a file as it is now.
    pub(super) fn of(file: File) -> io::Result<Self> {
        let found = file.metadata()?;
        Ok(Self {
            size: found.len(),
            written: (found.mtime(), found.mtime_nsec()),
            file,
        })
    }

    /// How many bytes it has.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Fails when somebody has written to it since.
    pub(super) fn check(&self) -> io::Result<()> {
        let found = self.file.metadata()?;
        let is_same =
            found.len() == self.size && (found.mtime(), found.mtime_nsec()) == self.written;
        match is_same {
            true => Ok(()),
            false => Err(io::Error::other("it was written to while it was in use")),
        }
    }

    /// The bytes from that place on, some of them; none at its end. Each caller has a place of its own.
    pub(super) fn piece(&self, from: u64) -> io::Result<Vec<u8>> {
        let left = self.size.saturating_sub(from);
        let length = usize::try_from(left.min(PIECE)).map_err(io::Error::other)?;
        let mut piece = vec![0; length];
        let read = self.file.read_exact_at(&mut piece, from);
        // What was written to may be shorter too, and that is not why.
        self.check()?;
        read.map(|()| piece)
    }

    /// All of it, piece by piece.
    pub(super) fn pieces(self: &Arc<Self>) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
        try_unfold((self.clone(), 0), |(content, from)| async move {
            let reader = content.clone();
            let read = tokio::task::spawn_blocking(move || reader.piece(from));
            let piece = Bytes::from(read.await.map_err(io::Error::other)??);
            let next = from + piece.len() as u64;
            Ok((!piece.is_empty()).then_some((piece, (content, next))))
        })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::TryStreamExt;

    use super::*;

    async fn all(content: &Arc<Content>) -> io::Result<Vec<u8>> {
        let read = |mut all: Vec<u8>, piece: Bytes| async move {
            all.extend_from_slice(&piece);
            Ok(all)
        };
        content.pieces().try_fold(Vec::new(), read).await
    }

    #[tokio::test]
    async fn it_stays_what_it_was_and_tells_when_it_does_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        let long: Vec<u8> = (0..PIECE * 2 + 3).map(|at| (at % 251) as u8).collect();
        std::fs::write(&path, &long).expect("written");
        let content = Content::of(File::open(&path).expect("a file")).expect("its facts");
        let content = Arc::new(content);
        // Another gets its name.
        let other = folder.path().join("other");
        std::fs::write(&other, "other").expect("written");
        let same = folder.path().join("same");
        std::fs::hard_link(&path, &same).expect("a second name");
        std::fs::rename(&other, &path).expect("renamed");
        for _ in 0..2 {
            assert!(all(&content).await.expect("its bytes") == long);
        }
        std::fs::write(&same, "written to").expect("written");
        assert!(content.check().is_err());
        assert!(all(&content).await.is_err());
    }
}
