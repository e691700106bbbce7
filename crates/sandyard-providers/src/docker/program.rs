//! The agent's program in a volume, one per installation, so that images need not contain it.
//!
//! ```text
//! sandyard-fill-<digest>-<attempt>   a container that is never started, through which the volume is filled
//! sandyard-agent-<digest>   the name of that container when the volume is full. It stays, and so keeps the volume
//! sandyard-agent-<digest>-<attempt>  the volume; mounted read-only at `/.sandyard` in every container
//! ```
//!
//! The first server that gives a container the second name has filled the volume that all servers use; no server waits for another
//! one, which may have died. No folder of the daemon's host is needed, which may be a remote host.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bollard::body_try_stream;
use bollard::models::MountPoint;
use bollard::query_parameters::{
    InspectContainerOptions, RenameContainerOptions, UploadToContainerOptions,
};
use bytes::Bytes;
use futures_util::future::{BoxFuture, Shared as SharedFuture};
use futures_util::{FutureExt, StreamExt, stream};
use parking_lot::Mutex;
use sandyard_provider::{ProviderError, ProviderErrorKind, Verb};
use sha2::{Digest, Sha256};
use tokio_util::io::ReaderStream;

use super::body::{AGENT_FOLDER, plain_volume};
use super::daemon::Shared;
use super::error::{DaemonResult, Fault, if_exists, timed_out};
use super::labels::{self, AGENT, INSTALLATION, random_text};
use super::{check, tar};
use crate::hex;

/// Prefix of the name of a container that keeps a full volume.
pub(super) const FULL_VOLUME_PREFIX: &str = "sandyard-agent-";

/// All callers that need the volume wait for this.
type Filling = SharedFuture<BoxFuture<'static, Result<(), Arc<ProviderError>>>>;

/// The upload in progress.
#[derive(Default)]
pub(super) struct Fillings(Mutex<Option<Filling>>);

/// The volume with the program in an unstarted container.
pub(super) fn program_volume(mounts: &[MountPoint]) -> Option<String> {
    let is_program = |mount: &&MountPoint| mount.destination.as_deref() == Some(AGENT_FOLDER);
    let name = mounts.iter().find(is_program)?.name.clone();
    name.filter(|name| name.starts_with(FULL_VOLUME_PREFIX) && check::is_volume_name(name))
}

impl Shared {
    /// The volume with the agent's program, full when this returns.
    pub(super) async fn agent_volume(self: &Arc<Self>) -> DaemonResult<String> {
        let digest = self.agent.get_or_try_init(|| self.digest()).await?;
        loop {
            if let Some(volume) = self.full_volume(digest).await? {
                return Ok(volume);
            }
            let result = self.filling(digest).await;
            result.map_err(|error| Fault::Provider(error.duplicate()))?;
        }
    }

    async fn full_volume(&self, digest: &str) -> DaemonResult<Option<String>> {
        let options = None::<InspectContainerOptions>;
        let holder = format!("{FULL_VOLUME_PREFIX}{digest}");
        let holder_info = if_exists(self.daemon.inspect_container(&holder, options).await)?;
        Ok(holder_info
            .and_then(|holder_info| program_volume(&holder_info.mounts.unwrap_or_default())))
    }

    /// Fills a volume, or joins the upload in progress. It continues when all callers give up, because the connection to the daemon
    /// may be slow.
    fn filling(self: &Arc<Self>, digest: &str) -> Filling {
        let mut current = self.fillings.0.lock();
        // An upload that ended in another way than below is not reused.
        if let Some(filling) = current.as_ref().filter(|filling| filling.peek().is_none()) {
            return filling.clone();
        }
        let (shared, digest) = (self.clone(), digest.to_owned());
        let task = tokio::spawn(async move {
            let result = shared.fill_in_time(&digest).await;
            *shared.fillings.0.lock() = None;
            result.map_err(|fault| Arc::new(fault.into_error(Verb::Create)))
        });
        let interrupted = |error: tokio::task::JoinError| {
            let message = "the upload of the agent's program was interrupted";
            Arc::new(ProviderError::new(ProviderErrorKind::Failed, message).source(error))
        };
        let filling = task.map(move |done| done.unwrap_or_else(|error| Err(interrupted(error))));
        let filling = filling.boxed().shared();
        *current = Some(filling.clone());
        filling
    }

    async fn fill_in_time(&self, digest: &str) -> DaemonResult {
        let attempt = &random_text()[..8];
        let container = format!("sandyard-fill-{digest}-{attempt}");
        let volume = format!("{FULL_VOLUME_PREFIX}{digest}-{attempt}");
        let timeout = self.config.timeouts.copy;
        let work = async {
            self.create_volume_holder(&container, &volume, digest)
                .await?;
            self.fill(&container).await?;
            self.declare_full(&container, digest).await
        };
        let result = tokio::time::timeout(timeout, work).await;
        let result = result.unwrap_or_else(|_| Err(timed_out(Verb::Create, timeout).into()));
        if let Ok(true) = result {
            tracing::info!(volume, "Uploaded the agent's program to Docker");
            return Ok(());
        }
        // A later sweep finds what could not be removed.
        let _ = self.remove_container(&container).await;
        let _ = self.remove_volume(&volume).await;
        result.map(drop)
    }

    /// Digest of the volume's content.
    async fn digest(&self) -> DaemonResult<String> {
        let path = self.config.program.clone();
        let authority = self.authority.get().cloned().unwrap_or_default();
        let salt = [self.config.installation.clone(), authority];
        let work = tokio::task::spawn_blocking(move || digest(&path, &salt));
        let digest = work.await.map_err(io::Error::other).and_then(|done| done);
        digest.map_err(|error| self.unreadable(error))
    }

    fn unreadable(&self, error: io::Error) -> Fault {
        let path = self.config.program.display();
        let message = "the program for containers cannot be read";
        let error = ProviderError::new(ProviderErrorKind::Failed, message).source(error);
        error.hint(Some(format!("`{path}` must exist"))).into()
    }

    /// Creates a volume, and the container through which it is filled.
    async fn create_volume_holder(
        &self,
        container: &str,
        volume: &str,
        digest: &str,
    ) -> DaemonResult {
        let image = self.empty_image().await?;
        let labels = labels::all([
            (AGENT, digest),
            (INSTALLATION, self.config.installation.as_str()),
        ]);
        let mounts = vec![plain_volume(volume, AGENT_FOLDER, false)];
        self.create_unstarted(container, &image, labels, mounts)
            .await?;
        Ok(())
    }

    /// Uploads the program into the volume.
    async fn fill(&self, container: &str) -> DaemonResult {
        let file = tokio::fs::File::open(&self.config.program).await;
        let file = file.map_err(|error| self.unreadable(error))?;
        let size = file
            .metadata()
            .await
            .map_err(|error| self.unreadable(error))?
            .len();
        let mut head = Vec::new();
        if let Some(authority) = self.authority.get() {
            head.extend(tar::file("gateway.pem", 0o444, authority.len() as u64));
            head.extend_from_slice(authority.as_bytes());
            head.extend(tar::padding(authority.len() as u64));
        }
        head.extend(tar::file("agent", 0o555, size));
        let tail = [tar::padding(size), tar::END.to_vec()].concat();
        let piece = |bytes: Vec<u8>| stream::iter([Ok::<_, io::Error>(Bytes::from(bytes))]);
        let file = ReaderStream::with_capacity(file, 256 << 10);
        let archive = piece(head).chain(file).chain(piece(tail));
        let options = UploadToContainerOptions {
            path: AGENT_FOLDER.to_owned(),
            ..UploadToContainerOptions::default()
        };
        let body = body_try_stream(archive);
        let upload = self
            .daemon
            .upload_to_container(container, Some(options), body);
        Ok(upload.await?)
    }

    /// Marks the volume of a container as full; false when another server was faster.
    async fn declare_full(&self, container: &str, digest: &str) -> DaemonResult<bool> {
        let options = RenameContainerOptions {
            name: format!("{FULL_VOLUME_PREFIX}{digest}"),
        };
        match self.daemon.rename_container(container, options).await {
            Ok(()) => Ok(true),
            Err(error) => {
                let fault = Fault::from(error);
                let is_filled = self.full_volume(digest).await?.is_some();
                if is_filled { Ok(false) } else { Err(fault) }
            }
        }
    }
}

fn digest(path: &PathBuf, salt: &[String]) -> io::Result<String> {
    let mut file = std::fs::File::open(Path::new(path))?;
    let mut hash = Sha256::new();
    for text in salt {
        hash.update(text.as_bytes());
        hash.update([0]);
    }
    let mut chunk = vec![0; 256 << 10];
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(hex::encode(&hash.finalize()[..12])),
            count => hash.update(&chunk[..count]),
        }
    }
}
