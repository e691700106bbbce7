//! The DNS servers and hosts file in use, kept up to date with the host's files.

use std::fs::{self, File, Metadata};
use std::io::Read;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hickory_resolver::TokioResolver;
use hickory_resolver::net::NetError;
use parking_lot::Mutex;

use super::cache::AddressCache;
use super::hosts_file::HostsFile;
use super::in_flight::InFlight;
use super::{hosts_file, resolver};

/// Minimum time between checks of the host's files.
const CHECK_INTERVAL: Duration = Duration::from_secs(3);

/// Maximum size of a hosts file or `resolv.conf`, in bytes; block lists of a few hundred thousand names fit.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// Provides the current source of names.
#[derive(Debug)]
pub(super) struct Sources {
    settings: Settings,
    state: Mutex<State>,
}

/// The fixed settings.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// The operator's DNS servers; empty: those of `resolv_conf`.
    pub(super) name_servers: Vec<SocketAddr>,
    /// The file with the host's DNS servers.
    pub(super) resolv_conf: PathBuf,
    /// The host's hosts file.
    pub(super) hosts: PathBuf,
    /// Minimum time between checks for changes of these files.
    pub(super) check_interval: Duration,
    /// How long a whole look-up may take.
    pub(super) timeout: Duration,
}

/// A source of names. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Source {
    /// The hosts file, which comes first.
    pub(super) hosts_file: Arc<HostsFile>,
    /// Recent answers of the DNS servers.
    pub(super) cache: Arc<AddressCache>,
    /// Look-ups in progress.
    pub(super) in_flight: Arc<InFlight>,
    /// The DNS servers; `None` when the host currently has none.
    pub(super) resolver: Option<TokioResolver>,
}

#[derive(Debug)]
struct State {
    checked_at: Instant,
    stamps: Stamps,
    source: Source,
}

/// The versions of the two files; a missing file has no stamp.
type Stamps = [Option<Stamp>; 2];

/// Identifies a version of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl Sources {
    /// Uses the host's usual files.
    pub(super) fn of_host(
        name_servers: &[SocketAddr],
        timeout: Duration,
    ) -> Result<Self, NetError> {
        Self::new(Settings {
            name_servers: name_servers.to_vec(),
            resolv_conf: "/etc/resolv.conf".into(),
            hosts: "/etc/hosts".into(),
            check_interval: CHECK_INTERVAL,
            timeout,
        })
    }

    /// Reads the files for the first time. NotFound ones are no error: they may come.
    pub(super) fn new(settings: Settings) -> Result<Self, NetError> {
        let stamps = settings.stamps();
        let source = settings.read()?;
        let state = Mutex::new(State {
            checked_at: Instant::now(),
            stamps,
            source,
        });
        Ok(Self { settings, state })
    }

    /// The current source.
    pub(super) fn current(&self) -> Source {
        let mut state = self.state.lock();
        if state.checked_at.elapsed() >= self.settings.check_interval {
            state.checked_at = Instant::now();
            // Before the files are read: a change in between is seen the next time.
            let stamps = self.settings.stamps();
            if stamps != state.stamps {
                state.stamps = stamps;
                match self.settings.read() {
                    Ok(source) => state.source = source,
                    Err(err) => {
                        tracing::warn!(%err, "Keeping the old DNS resolver: the host's new settings do not work");
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
        let servers = if self.name_servers.is_empty() {
            resolver::servers_of(&read_text(&self.resolv_conf))
        } else {
            self.name_servers.clone()
        };
        let resolver = match servers.as_slice() {
            [] => {
                tracing::warn!(
                    path = %self.resolv_conf.display(),
                    "No DNS server is configured there: sandboxes cannot look up names"
                );
                None
            }
            servers => Some(resolver::build(servers, self.timeout)?),
        };
        Ok(Source {
            hosts_file: Arc::new(hosts_file::read(&read_text(&self.hosts))),
            cache: Arc::default(),
            in_flight: Arc::default(),
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

/// The text of a file; empty if it cannot be read.
fn read_text(path: &Path) -> String {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_FILE_BYTES).read_to_end(&mut bytes));
    if let Err(err) = read {
        tracing::debug!(path = %path.display(), %err, "Cannot read a file");
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
