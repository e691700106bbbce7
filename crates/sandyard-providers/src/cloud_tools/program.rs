//! The program that is sent to sandboxes.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::Stream;
use rustix::fs::{Mode, OFlags};
use sandyard_provider::{ProviderError, ProviderErrorKind, Result};
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use super::content::Content;

/// Name of a program that has only the role of an agent.
const AGENT_PROGRAM: &str = "sandyard-agent";

/// The program, and its name in sandboxes.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    path: PathBuf,
    /// Contains a digest, so that different programs have different names.
    name: String,
    /// Size in bytes.
    pub(crate) size: u64,
    /// Stays open: after an upgrade the path names another file.
    content: Arc<Content>,
    /// The compressed program, once it was needed; `None` when it cannot be compressed.
    packed: Arc<OnceCell<Option<Arc<Content>>>>,
}

impl Program {
    /// Opens and reads the program.
    pub(crate) async fn open(path: &Path) -> Result<Self> {
        let owned = path.to_owned();
        let read = tokio::task::spawn_blocking(move || {
            let content = Content::of(File::open(owned)?)?;
            Ok((digest(&content)?, content))
        });
        let read = read.await.map_err(io::Error::other).and_then(|read| read);
        let (digest, content) = read.map_err(|error| {
            let message = format!("the agent's program `{}` cannot be read", path.display());
            ProviderError::new(ProviderErrorKind::Invalid, message).source(error)
        })?;
        Ok(Self {
            path: path.to_owned(),
            name: format!("agent-{digest}"),
            size: content.size(),
            content: Arc::new(content),
            packed: Arc::default(),
        })
    }

    /// Its path on this host.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Its name in sandboxes.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is only an agent.
    pub(crate) fn is_only_an_agent(&self) -> bool {
        is_only_an_agent(&self.path)
    }

    /// Its content, piece by piece.
    pub(crate) fn pieces(&self) -> Result<impl Stream<Item = io::Result<Bytes>> + Send + use<>> {
        self.content.check().map_err(|error| {
            let path = self.path.display();
            let message = format!("the agent's program `{path}` has changed: restart the server");
            ProviderError::new(ProviderErrorKind::Failed, message).source(error)
        })?;
        Ok(self.content.pieces())
    }

    /// The content compressed with gzip.
    pub(super) async fn packed(&self) -> Option<&Arc<Content>> {
        let make = || async {
            let content = self.content.clone();
            let packed = tokio::task::spawn_blocking(move || pack(&content)).await;
            match packed.map_err(io::Error::other).and_then(|packed| packed) {
                Ok(packed) => Some(Arc::new(packed)),
                Err(error) => {
                    tracing::warn!(%error, "Failed to compress the agent's program; sending it uncompressed");
                    None
                }
            }
        };
        self.packed.get_or_init(make).await.as_ref()
    }
}

/// Whether a program is only an agent.
pub(super) fn is_only_an_agent(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == AGENT_PROGRAM)
}

/// Passes all bytes to `consume`.
fn read(content: &Content, mut consume: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut from = 0;
    loop {
        let piece = content.piece(from)?;
        if piece.is_empty() {
            return Ok(());
        }
        from += piece.len() as u64;
        consume(&piece)?;
    }
}

fn digest(content: &Content) -> io::Result<String> {
    let mut hash = Sha256::new();
    read(content, |piece| {
        hash.update(piece);
        Ok(())
    })?;
    Ok(crate::hex::encode(&hash.finalize()[..8]))
}

/// Compresses the content into a file without a name, which is removed with this process.
fn pack(content: &Content) -> io::Result<Content> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::open(std::env::temp_dir(), flags, Mode::RUSR | Mode::WUSR)?;
    let mut packer = GzEncoder::new(BufWriter::new(File::from(file)), Compression::fast());
    read(content, |piece| packer.write_all(piece))?;
    let file = packer.finish()?.into_inner();
    Content::of(file.map_err(io::IntoInnerError::into_error)?)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;
    use futures_util::TryStreamExt;

    use super::*;

    #[tokio::test]
    async fn a_missing_program_is_an_error() {
        let error = Program::open(Path::new("/nothing/here"))
            .await
            .expect_err("none");
        assert_eq!(error.kind, ProviderErrorKind::Invalid);
    }

    #[tokio::test]
    async fn after_an_upgrade_the_opened_program_is_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("sandyard");
        let text = "the first".repeat(1000);
        std::fs::write(&path, &text).expect("written");
        let program = Program::open(&path).await.expect("a program");
        std::fs::remove_file(&path).expect("removed");
        std::fs::write(&path, "the second").expect("written");
        let pieces = program.pieces().expect("its bytes");
        let pieces: Vec<Bytes> = pieces.try_collect().await.expect("read");
        assert_eq!(pieces.concat(), text.as_bytes());

        let packed = program.packed().await.expect("space for it");
        assert!(packed.size() < program.size / 2);
        let pieces: Vec<Bytes> = packed.pieces().try_collect().await.expect("read");
        let mut unpacked = String::new();
        let read = GzDecoder::new(&*pieces.concat()).read_to_string(&mut unpacked);
        read.expect("unpacked");
        assert_eq!(unpacked, text);
    }

    #[tokio::test]
    async fn a_modified_program_is_not_sent() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("sandyard");
        std::fs::write(&path, "the first").expect("written");
        let program = Program::open(&path).await.expect("a program");
        std::fs::write(&path, "modified").expect("written");
        let error = program.pieces().err().expect("refused");
        assert!(error.to_string().contains("restart"), "{error}");
    }
}
