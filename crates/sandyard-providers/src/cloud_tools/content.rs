//! The content of a file that stays open: it remains the same when the path is replaced.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::try_unfold;

/// Bytes per read.
const PIECE: u64 = 256 << 10;

/// An open file.
#[derive(Debug)]
pub(super) struct Content {
    file: File,
    size: u64,
    /// Time of the last modification, in seconds and nanoseconds.
    modified: (i64, i64),
}

impl Content {
    /// The content of a file as it is now.
    pub(super) fn of(file: File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self {
            size: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            file,
        })
    }

    /// Size in bytes.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Fails when the file was written to since.
    pub(super) fn check(&self) -> io::Result<()> {
        let metadata = self.file.metadata()?;
        let is_same = metadata.len() == self.size
            && (metadata.mtime(), metadata.mtime_nsec()) == self.modified;
        match is_same {
            true => Ok(()),
            false => Err(io::Error::other(
                "the file was modified while it was in use",
            )),
        }
    }

    /// Some bytes from an offset on; empty at the end. Callers may read at the same time.
    pub(super) fn piece(&self, offset: u64) -> io::Result<Vec<u8>> {
        let remaining = self.size.saturating_sub(offset);
        let length = usize::try_from(remaining.min(PIECE)).map_err(io::Error::other)?;
        let mut piece = vec![0; length];
        let read = self.file.read_exact_at(&mut piece, offset);
        // A file that was written to may be shorter, which would give a misleading error.
        self.check()?;
        read.map(|()| piece)
    }

    /// The entire content, piece by piece.
    pub(super) fn pieces(self: &Arc<Self>) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
        try_unfold((self.clone(), 0), |(content, offset)| async move {
            let reader = content.clone();
            let read = tokio::task::spawn_blocking(move || reader.piece(offset));
            let piece = Bytes::from(read.await.map_err(io::Error::other)??);
            let next = offset + piece.len() as u64;
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
    async fn the_content_stays_the_same_and_modifications_are_detected() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        let long: Vec<u8> = (0..PIECE * 2 + 3).map(|at| (at % 251) as u8).collect();
        std::fs::write(&path, &long).expect("written");
        let content = Content::of(File::open(&path).expect("a file")).expect("its facts");
        let content = Arc::new(content);
        // The path now names another file.
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
