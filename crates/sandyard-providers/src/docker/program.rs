//! The agent's program in a volume, once an installation, so that no image needs to have it.
//!
//! ```text
//! sandyard-fill-<digest>-<attempt>   a container that is never started, through which a volume is filled
//! sandyard-agent-<digest>            what that container is called once the volume is full. It stays, and so holds the volume
//! sandyard-agent-<digest>-<attempt>  the volume; mounted read-only at `/.sandyard` in every container
//! ```
//!
//! Who is first to give a container the second name has filled the volume that all use; nobody waits for anybody who may have
//! died. No folder of the daemon's host is needed for this, which may be another host than ours.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bollard::body_try_stream;
use bollard::models::MountPoint;
use bollard::query_parameters::{
    InspectContainerOptions, RenameContainerOptions, UploadToContainerOptions,
};
use bytes::Bytes;
use futures_util::future::{BoxFuture, Shared as Common};
use futures_util::{FutureExt, StreamExt, stream};
use sandyard_provider::{ProviderError, ProviderErrorKind, Verb};
use sha2::{Digest, Sha256};
use tokio_util::io::ReaderStream;

use super::body::{AGENT_FOLDER, plain_volume};
use super::daemon::Shared;
use super::error::{DaemonResult, Fault, if_there, timed_out};
use super::labels::{self, AGENT, INSTALLATION, hex, random_text};
use super::{check, tar};

/// What the name of a container that holds a full volume begins with.
pub(super) const FULL: &str = "sandyard-agent-";

/// What all who want the volume wait for.
type Filling = Common<BoxFuture<'static, Result<(), Arc<ProviderError>>>>;

/// The filling that goes on just now.
#[derive(Default)]
pub(super) struct Fillings(Mutex<Option<Filling>>);

impl Fillings {
    fn lock(&self) -> MutexGuard<'_, Option<Filling>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The volume that a container which is never started has the program in.
pub(super) fn program_volume(mounts: &[MountPoint]) -> Option<String> {
    let is_it = |mount: &&MountPoint| mount.destination.as_deref() == Some(AGENT_FOLDER);
    let name = mounts.iter().find(is_it)?.name.clone();
    name.filter(|name| name.starts_with(FULL) && check::is_volume_name(name))
}

impl Shared {
    /// The volume with the agent's program, full when this returns.
    pub(super) async fn agent_volume(self: &Arc<Self>) -> DaemonResult<String> {
        let digest = self.agent.get_or_try_init(|| self.digest()).await?;
        loop {
            if let Some(volume) = self.full_volume(digest).await? {
                return Ok(volume);
            }
            let filled = self.filling(digest).await;
            filled.map_err(|error| Fault::Provider(error.duplicate()))?;
        }
    }

    async fn full_volume(&self, digest: &str) -> DaemonResult<Option<String>> {
        let options = None::<InspectContainerOptions>;
        let holder = format!("{FULL}{digest}");
        let found = if_there(self.daemon.inspect_container(&holder, options).await)?;
        Ok(found.and_then(|found| program_volume(&found.mounts.unwrap_or_default())))
    }

    /// Fills a volume, or joins whoever does. It goes on when all who asked give up: the way to the daemon may be slow.
    fn filling(self: &Arc<Self>, digest: &str) -> Filling {
        let mut now = self.fillings.lock();
        // One that came to its end in another way than below does not stay.
        if let Some(filling) = now.as_ref().filter(|one| one.peek().is_none()) {
            return filling.clone();
        }
        let (shared, digest) = (self.clone(), digest.to_owned());
        let task = tokio::spawn(async move {
            let filled = shared.fill_in_time(&digest).await;
            *shared.fillings.lock() = None;
            filled.map_err(|fault| Arc::new(fault.into_error(Verb::Create)))
        });
        let ended = |error: tokio::task::JoinError| {
            let message = "putting the agent's program into a volume was given up";
            Arc::new(ProviderError::new(ProviderErrorKind::Failed, message).source(error))
        };
        let filling = task.map(move |done| done.unwrap_or_else(|error| Err(ended(error))));
        let filling = filling.boxed().shared();
        *now = Some(filling.clone());
        filling
    }

    async fn fill_in_time(&self, digest: &str) -> DaemonResult {
        let attempt = &random_text()[..8];
        let container = format!("sandyard-fill-{digest}-{attempt}");
        let volume = format!("{FULL}{digest}-{attempt}");
        let most = self.config.timeouts.copy;
        let work = async {
            self.hold(&container, &volume, digest).await?;
            self.fill(&container).await?;
            self.declare_full(&container, digest).await
        };
        let filled = tokio::time::timeout(most, work).await;
        let filled = filled.unwrap_or_else(|_| Err(timed_out(Verb::Create, most).into()));
        if let Ok(true) = filled {
            tracing::info!(volume, "Put the agent's program into a volume of Docker's");
            return Ok(());
        }
        // What cannot be removed is found by a later sweep.
        let _ = self.remove_container(&container).await;
        let _ = self.remove_volume(&volume).await;
        filled.map(drop)
    }

    /// Names what goes into the volume.
    async fn digest(&self) -> DaemonResult<String> {
        let path = self.config.program.clone();
        let authority = self.authority.get().cloned().unwrap_or_default();
        let whose = [self.config.installation.clone(), authority];
        let work = tokio::task::spawn_blocking(move || digest(&path, &whose));
        let digest = work.await.map_err(io::Error::other).and_then(|done| done);
        digest.map_err(|error| self.unreadable(error))
    }

    fn unreadable(&self, error: io::Error) -> Fault {
        let path = self.config.program.display();
        let message = "the program for containers cannot be read";
        let error = ProviderError::new(ProviderErrorKind::Failed, message).source(error);
        error.hint(Some(format!("`{path}` must be there"))).into()
    }

    /// Makes a volume, and the container through which it is filled.
    async fn hold(&self, container: &str, volume: &str, digest: &str) -> DaemonResult {
        let image = self.empty_image().await?;
        let labels = labels::all([
            (AGENT, digest),
            (INSTALLATION, self.config.installation.as_str()),
        ]);
        let mounts = vec![plain_volume(volume, AGENT_FOLDER, false)];
        self.never_started(container, &image, labels, mounts)
            .await?;
        Ok(())
    }

    /// Puts the program into the volume.
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

    /// Says that the volume of a container is full; false: somebody else was faster.
    async fn declare_full(&self, container: &str, digest: &str) -> DaemonResult<bool> {
        let options = RenameContainerOptions {
            name: format!("{FULL}{digest}"),
        };
        match self.daemon.rename_container(container, options).await {
            Ok(()) => Ok(true),
            Err(error) => {
                let fault = Fault::from(error);
                let is_taken = self.full_volume(digest).await?.is_some();
                if is_taken { Ok(false) } else { Err(fault) }
            }
        }
    }
}

fn digest(path: &PathBuf, whose: &[String]) -> io::Result<String> {
    let mut file = std::fs::File::open(Path::new(path))?;
    let mut hash = Sha256::new();
    for text in whose {
        hash.update(text.as_bytes());
        hash.update([0]);
    }
    let mut chunk = vec![0; 256 << 10];
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(hex(&hash.finalize()[..12])),
            count => hash.update(&chunk[..count]),
        }
    }
}
