//! Lists a folder from the output of `find`. A folder may have millions of entries, and the output is not trusted, so everything is
//! bounded: the number of entries, the bytes of all and of each, and the time.

use std::time::Duration;

use axum::body::Bytes;
use sandyard_agent_client::wire::event::{Output, ProcessEvent};
use sandyard_agent_client::wire::process::{ProcessConfig, ProcessSelector, Signal, StartRequest};
use sandyard_agent_client::{AgentClient, StartOptions};
use sandyard_core::ErrorKind;
use sandyard_service::{ServiceError, ServiceResult};

use super::entry::{FIELDS, read_all};
use super::error;

/// Largest number of entries.
pub(super) const MAX_ENTRIES: usize = 10_000;
/// Largest size in bytes; the path of the folder counts for each entry.
const MAX_BYTES: usize = 4 << 20;
/// Largest size of one entry in bytes: a hundred names and the target of a link.
const MAX_ENTRY: usize = 32 << 10;
/// Bytes that are kept of the errors that `find` prints.
const MAX_ERRORS: usize = 16 << 10;
/// Time limit.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The output so far.
#[derive(Debug, Default)]
struct Listing {
    printed: Vec<u8>,
    errors: Vec<u8>,
    /// Complete fields.
    fields: usize,
    /// Start of the incomplete entry.
    begin: usize,
    /// Length of the folder's path.
    prefix: usize,
}

impl Listing {
    /// Adds output; fails if it is too much.
    fn add(&mut self, output: &[u8]) -> ServiceResult<()> {
        for byte in output {
            self.printed.push(*byte);
            if *byte == 0 {
                self.fields += 1;
                if self.fields.is_multiple_of(FIELDS) {
                    self.begin = self.printed.len();
                }
            }
            let entries = self.fields / FIELDS;
            // The folder itself is an entry too.
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

/// Runs a `find` that prints [`super::entry::FORMAT`] for a folder and its entries; returns the entries as JSON. `path` is the folder as
/// the client knows it.
pub(super) async fn list(
    agent: &AgentClient,
    process: ProcessConfig,
    path: &str,
) -> ServiceResult<Bytes> {
    let mut listing = Listing {
        prefix: path.len(),
        ..Listing::default()
    };
    let reading = read_output(agent, process, &mut listing);
    match tokio::time::timeout(TIMEOUT, reading).await {
        Ok(done) => done?,
        Err(_) => {
            let message = "listing the folder took too long";
            return Err(ServiceError::new(ErrorKind::TimedOut, message));
        }
    }
    let path = path.to_owned();
    // Parsing thousands of entries would block other tasks.
    let read = tokio::task::spawn_blocking(move || write(&path, &listing));
    read.await.map_err(|error| {
        ServiceError::new(ErrorKind::Internal, "the listing failed").source(error)
    })?
}

async fn read_output(
    agent: &AgentClient,
    process: ProcessConfig,
    listing: &mut Listing,
) -> ServiceResult<()> {
    let request = StartRequest {
        process,
        stdin: Some(false),
        ..StartRequest::default()
    };
    let options = StartOptions {
        timeout: Some(TIMEOUT),
        user: None,
        retain_as: None,
    };
    let started = agent.start(&request, &options).await;
    let mut stream = started.map_err(error::with_client_paths)?;
    while let Some(event) = stream.next().await {
        match event.map_err(error::with_client_paths)? {
            ProcessEvent::Data(Output::Stderr(output)) => {
                let free = MAX_ERRORS.saturating_sub(listing.errors.len());
                listing
                    .errors
                    .extend_from_slice(&output[..free.min(output.len())]);
            }
            ProcessEvent::Data(output) => {
                if let Err(error) = listing.add(output.bytes()) {
                    let process = ProcessSelector::Pid(stream.pid());
                    // A process that cannot be killed ends at its time limit.
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

fn write(path: &str, listing: &Listing) -> ServiceResult<Bytes> {
    let entries = read_all(path, &listing.printed).ok_or_else(unreadable)?;
    // The folder comes first. Entries that could not be read were removed meanwhile.
    match entries.split_first() {
        Some((folder, below)) if folder.path == path => {
            let written = serde_json::to_vec(below);
            written.map(Bytes::from).map_err(|_| unreadable())
        }
        _ => Err(error::of(path, &listing.errors, "list")),
    }
}

fn too_many() -> ServiceError {
    let message = format!(
        "the folder has too many entries: a listing has at most {MAX_ENTRIES} and {} MiB",
        MAX_BYTES >> 20
    );
    ServiceError::invalid("path", message)
        .hint("use a smaller depth or a folder further down, or list it in a sandbox that mounts the volume")
}

pub(super) fn unreadable() -> ServiceError {
    let message = "the volume helper sent an unreadable answer";
    ServiceError::new(ErrorKind::AgentFailed, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &[u8] = b"f\x001\x00644\x000\x000\x000\x000\x000\x00\x00";

    fn listing_of(prefix: usize, name: &str, count: usize) -> ServiceResult<Listing> {
        let mut listing = Listing {
            prefix,
            ..Listing::default()
        };
        for _ in 0..count {
            listing.add(ENTRY)?;
            listing.add(name.as_bytes())?;
            listing.add(b"\0")?;
        }
        Ok(listing)
    }

    #[test]
    fn a_listing_that_is_too_large_fails() {
        assert!(listing_of(1, "a", MAX_ENTRIES + 1).is_ok());
        let long = "a".repeat(255);
        for (prefix, name, count) in [
            (1, "a", MAX_ENTRIES + 2),
            (1, long.as_str(), 20_000),
            // Each entry's path begins with the folder's.
            (4096, "a", 1100),
        ] {
            let refused = listing_of(prefix, name, count).unwrap_err();
            assert_eq!(refused.kind, ErrorKind::Invalid);
            assert!(refused.message.contains("too many entries"), "{refused}");
        }
        let endless = "a".repeat(MAX_ENTRY + 1);
        let refused = listing_of(1, &endless, 1).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::AgentFailed);
    }

    #[test]
    fn the_folder_itself_is_left_out() {
        let mut listing = listing_of(1, "", 1).unwrap();
        listing.add(ENTRY).unwrap();
        listing.add(b"x\0").unwrap();
        let written = write("/d", &listing).unwrap();
        let entries: serde_json::Value = serde_json::from_slice(&written).unwrap();
        assert_eq!(entries.as_array().unwrap().len(), 1);
        assert_eq!(entries[0]["path"], "/d/x");
        assert!(write("/d", &Listing::default()).is_err());
    }
}
