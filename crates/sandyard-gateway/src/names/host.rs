//! Whom to ask, kept up with the host's own files.

use std::fs::{self, File, Metadata};
use std::io::Read;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hickory_resolver::TokioResolver;
use hickory_resolver::net::NetError;

use super::kept::Kept;
use super::shared::Shared;
use super::written::Written;
use super::{resolver, written};

/// How often the host's files are looked at, at most.
const LOOKED_AT_EVERY: Duration = Duration::from_secs(3);

/// Largest hosts file or `resolv.conf` that is read; block lists of a few hundred thousand names fit.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// Knows whom to ask at any moment.
#[derive(Debug)]
pub(super) struct Sources {
    settings: Settings,
    state: Mutex<State>,
}

/// What does not change.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// Name servers that an operator gives; those of `resolv_conf` when there are none.
    pub(super) given: Vec<SocketAddr>,
    /// Where the host's name servers are written.
    pub(super) resolv_conf: PathBuf,
    /// Where the host's own names are written.
    pub(super) hosts: PathBuf,
    /// How often to look whether those have changed.
    pub(super) looked_at_every: Duration,
    /// How long a look-up may take in all.
    pub(super) patience: Duration,
}

/// Whom to ask just now. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Source {
    /// The host's own names, which come first.
    pub(super) written: Arc<Written>,
    /// What these were asked a moment ago.
    pub(super) kept: Arc<Kept>,
    /// What they are being asked.
    pub(super) shared: Arc<Shared>,
    /// Name servers; none when the host has none just now.
    pub(super) resolver: Option<TokioResolver>,
}

#[derive(Debug)]
struct State {
    looked_at: Instant,
    stamps: Stamps,
    source: Source,
}

/// How the two files looked; a file that is missing has no stamp.
type Stamps = [Option<Stamp>; 2];

/// Tells one version of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl Sources {
    /// Takes the host's usual files.
    pub(super) fn of_host(given: &[SocketAddr], patience: Duration) -> Result<Self, NetError> {
        Self::new(Settings {
            given: given.to_vec(),
            resolv_conf: "/etc/resolv.conf".into(),
            hosts: "/etc/hosts".into(),
            looked_at_every: LOOKED_AT_EVERY,
            patience,
        })
    }

    /// Reads the files for the first time. Missing ones are no error: they may come.
    pub(super) fn new(settings: Settings) -> Result<Self, NetError> {
        let stamps = settings.stamps();
        let source = settings.read()?;
        let state = Mutex::new(State {
            looked_at: Instant::now(),
            stamps,
            source,
        });
        Ok(Self { settings, state })
    }

    /// Whom to ask just now.
    pub(super) fn current(&self) -> Source {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.looked_at.elapsed() >= self.settings.looked_at_every {
            state.looked_at = Instant::now();
            // Before the files are read: what changes in between is seen the next time.
            let stamps = self.settings.stamps();
            if stamps != state.stamps {
                state.stamps = stamps;
                match self.settings.read() {
                    Ok(source) => state.source = source,
                    Err(err) => {
                        tracing::warn!(%err, "the resolver stays as it was: the host's new settings do not work");
                    }
                }
            }
        }
        state.source.clone()
    }
}

impl Settings {
    fn stamps(&self) -> Stamps {
        [&self.resolv_conf, &self.hosts].map(|path| fs::metadata(path).ok().map(Stamp::from))
    }

    fn read(&self) -> Result<Source, NetError> {
        let servers = if self.given.is_empty() {
            resolver::servers_of(&read_text(&self.resolv_conf))
        } else {
            self.given.clone()
        };
        let resolver = match servers.as_slice() {
            [] => {
                tracing::warn!(
                    path = %self.resolv_conf.display(),
                    "no name server is named there: sandboxes cannot look names up until one is"
                );
                None
            }
            servers => Some(resolver::build(servers, self.patience)?),
        };
        Ok(Source {
            written: Arc::new(written::read(&read_text(&self.hosts))),
            kept: Arc::default(),
            shared: Arc::default(),
            resolver,
        })
    }
}

impl From<Metadata> for Stamp {
    fn from(metadata: Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            bytes: metadata.len(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// The text of a file; what cannot be read is empty.
fn read_text(path: &Path) -> String {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_FILE_BYTES).read_to_end(&mut bytes));
    if let Err(err) = read {
        tracing::debug!(path = %path.display(), %err, "cannot be read");
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
