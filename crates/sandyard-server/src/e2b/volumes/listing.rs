//! What a folder holds, gathered from what `find` prints. Folders can hold millions, and what runs in the keeper may print
//! anything, so all of it is bounded: how much is kept, how much one entry may say, and for how long.

use std::time::Duration;

use axum::body::Bytes;
use sandyard_agent_client::wire::event::{Output, ProcessEvent};
use sandyard_agent_client::wire::process::{ProcessConfig, ProcessSelector, Signal, StartRequest};
use sandyard_agent_client::{AgentClient, StartOptions};
use sandyard_core::ErrorKind;
use sandyard_service::ServiceError;

use super::entry::{FIELDS, read_all};
use super::error;

/// Most entries of a listing.
pub(super) const MAX_ENTRIES: usize = 10_000;
/// Most bytes of a listing, the folder's own path before each entry's included.
const MAX_BYTES: usize = 4 << 20;
/// Most bytes of one entry: a hundred names and where a link leads.
const MAX_ENTRY: usize = 32 << 10;
/// Most that is kept of what `find` complains about.
const MAX_ERRORS: usize = 16 << 10;
/// How long it may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What was printed so far.
#[derive(Debug, Default)]
struct Gathered {
    printed: Vec<u8>,
    errors: Vec<u8>,
    /// Texts that ended.
    fields: usize,
    /// Where the entry that is being printed begins.
    begin: usize,
    /// Length of the folder's own path.
    prefix: usize,
}

impl Gathered {
    /// Takes some more of it; refused once it is too much.
    fn take(&mut self, piece: &[u8]) -> Result<(), ServiceError> {
        for byte in piece {
            self.printed.push(*byte);
            if *byte == 0 {
                self.fields += 1;
                if self.fields.is_multiple_of(FIELDS) {
                    self.begin = self.printed.len();
                }
            }
            let entries = self.fields / FIELDS;
            // The folder itself is one more.
            if entries > MAX_ENTRIES + 1 || self.printed.len() + entries * self.prefix > MAX_BYTES {
                return Err(too_many());
            }
            if self.printed.len() - self.begin > MAX_ENTRY {
                return Err(unreadable());
            }
        }
        Ok(())
    }
}

/// Runs a `find` that prints [`super::entry::FORMAT`] of a folder and what is in it; returns the latter as JSON. `path` is
/// the folder's as the client knows it.
pub(super) async fn list(
    agent: &AgentClient,
    process: ProcessConfig,
    path: &str,
) -> Result<Bytes, ServiceError> {
    let mut gathered = Gathered {
        prefix: path.len(),
        ..Gathered::default()
    };
    let gathering = gather(agent, process, &mut gathered);
    match tokio::time::timeout(PATIENCE, gathering).await {
        Ok(done) => done?,
        Err(_) => {
            let message = "listing the folder took too long";
            return Err(ServiceError::new(ErrorKind::TimedOut, message));
        }
    }
    let path = path.to_owned();
    // Reading and writing thousands of them would keep others waiting.
    let read = tokio::task::spawn_blocking(move || write(&path, &gathered));
    read.await.map_err(|error| {
        ServiceError::new(ErrorKind::Internal, "the work broke off").source(error)
    })?
}

async fn gather(
    agent: &AgentClient,
    process: ProcessConfig,
    gathered: &mut Gathered,
) -> Result<(), ServiceError> {
    let request = StartRequest {
        process,
        stdin: Some(false),
        ..StartRequest::default()
    };
    let options = StartOptions {
        timeout: Some(PATIENCE),
        user: None,
        retain_as: None,
    };
    let started = agent.start(&request, &options).await;
    let mut stream = started.map_err(error::with_client_paths)?;
    while let Some(event) = stream.next().await {
        match event.map_err(error::with_client_paths)? {
            ProcessEvent::Data(Output::Stderr(piece)) => {
                let room = MAX_ERRORS.saturating_sub(gathered.errors.len());
                gathered
                    .errors
                    .extend_from_slice(&piece[..room.min(piece.len())]);
            }
            ProcessEvent::Data(output) => {
                if let Err(error) = gathered.take(output.bytes()) {
                    let process = ProcessSelector::Pid(stream.pid());
                    // One that cannot be killed ends when its time is over.
                    let _ = agent.signal(process, Signal::KILL).await;
                    return Err(error);
                }
            }
            ProcessEvent::End(_) => return Ok(()),
            _ => {}
        }
    }
    Err(unreadable())
}

fn write(path: &str, gathered: &Gathered) -> Result<Bytes, ServiceError> {
    let entries = read_all(path, &gathered.printed).ok_or_else(unreadable)?;
    // The folder comes first. What could not be looked at below it vanished meanwhile.
    match entries.split_first() {
        Some((folder, below)) if folder.path == path => {
            let written = serde_json::to_vec(below);
            written.map(Bytes::from).map_err(|_| unreadable())
        }
        _ => Err(error::of(path, &gathered.errors, "list")),
    }
}

fn too_many() -> ServiceError {
    let message = format!(
        "the folder has too many entries: at most {MAX_ENTRIES}, and {} MiB, are listed at once",
        MAX_BYTES >> 20
    );
    ServiceError::invalid("path", message)
        .hint("list it with a smaller depth or a folder further down, or look at it in a sandbox that has the volume")
}

pub(super) fn unreadable() -> ServiceError {
    let message = "what the volume holds cannot be read";
    ServiceError::new(ErrorKind::AgentFailed, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &[u8] = b"f\x001\x00644\x000\x000\x000\x000\x000\x00\x00";

    fn gather_many(prefix: usize, name: &str, count: usize) -> Result<Gathered, ServiceError> {
        let mut gathered = Gathered {
            prefix,
            ..Gathered::default()
        };
        for _ in 0..count {
            gathered.take(ENTRY)?;
            gathered.take(name.as_bytes())?;
            gathered.take(b"\0")?;
        }
        Ok(gathered)
    }

    #[test]
    fn too_much_is_refused_before_it_is_kept() {
        assert!(gather_many(1, "a", MAX_ENTRIES + 1).is_ok());
        let long = "a".repeat(255);
        for (prefix, name, count) in [
            (1, "a", MAX_ENTRIES + 2),
            (1, long.as_str(), 20_000),
            // Each entry's path begins with the folder's.
            (4096, "a", 1100),
        ] {
            let refused = gather_many(prefix, name, count).unwrap_err();
            assert_eq!(refused.kind, ErrorKind::Invalid);
            assert!(refused.message.contains("too many entries"), "{refused}");
        }
        let endless = "a".repeat(MAX_ENTRY + 1);
        let refused = gather_many(1, &endless, 1).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::AgentFailed);
    }

    #[test]
    fn the_folder_itself_is_not_in_it() {
        let mut gathered = gather_many(1, "", 1).unwrap();
        gathered.take(ENTRY).unwrap();
        gathered.take(b"x\0").unwrap();
        let written = write("/d", &gathered).unwrap();
        let entries: serde_json::Value = serde_json::from_slice(&written).unwrap();
        assert_eq!(entries.as_array().unwrap().len(), 1);
        assert_eq!(entries[0]["path"], "/d/x");
        assert!(write("/d", &Gathered::default()).is_err());
    }
}
