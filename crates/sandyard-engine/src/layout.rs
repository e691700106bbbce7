//! Where things lie in the data directory.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sandyard_core::SandboxId;

use crate::runtime_dir;

/// The data directory: all the engine remembers.
#[derive(Clone, Debug)]
pub struct DataDir {
    root: PathBuf,
}

impl DataDir {
    /// Names the directory; nothing is touched.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// `/var/lib/sandyard` for root, else the user's own data directory.
    pub fn default_for_user(
        is_root: bool,
        xdg_data_home: Option<PathBuf>,
        home: Option<PathBuf>,
    ) -> PathBuf {
        if is_root {
            return PathBuf::from("/var/lib/sandyard");
        }
        let data = xdg_data_home.filter(|path| path.is_absolute());
        data.or_else(|| home.map(|home| home.join(".local/share")))
            .unwrap_or_else(|| PathBuf::from("/var/tmp"))
            .join("sandyard")
    }

    /// Makes it and its folders, for its owner alone: layers hold other people's setuid programs.
    pub(crate) fn create(&self) -> io::Result<()> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.root)?;
        fs::set_permissions(&self.root, fs::Permissions::from_mode(0o700))?;
        runtime_dir::ensure(&self.run(), &format!("{:08x}", self.fingerprint()))?;
        for folder in [
            self.sandboxes(),
            self.id_ranges(),
            self.blanks(),
            self.trash(),
            self.spares(),
            self.trust(),
            self.volumes(),
        ] {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)?;
        }
        Ok(())
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A number that tells this data directory from others on the host.
    pub(crate) fn fingerprint(&self) -> u32 {
        let path = self
            .root
            .canonicalize()
            .unwrap_or_else(|_| self.root.clone());
        // FNV-1a.
        let bytes = path.as_os_str().as_encoded_bytes().iter();
        bytes.fold(0x811c_9dc5, |hash, byte| {
            (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
        })
    }

    /// What means nothing after a restart of the host.
    pub(crate) fn run(&self) -> PathBuf {
        self.root.join("run")
    }

    /// Where the launcher listens.
    pub fn launcher_socket(&self) -> PathBuf {
        self.root.join("launcher.sock")
    }

    /// Held by the one launcher of this directory.
    pub(crate) fn launcher_lock(&self) -> PathBuf {
        self.root.join("launcher.lock")
    }

    /// Shared by those who are making a sandbox's folder; a sweep that looks for abandoned ones holds it alone.
    pub(crate) fn births_lock(&self) -> PathBuf {
        self.run().join("births.lock")
    }

    /// One folder a sandbox.
    pub(crate) fn sandboxes(&self) -> PathBuf {
        self.root.join("sandboxes")
    }

    /// One file a claimed range of user ids.
    pub(crate) fn id_ranges(&self) -> PathBuf {
        self.run().join("ids")
    }

    /// Folders of deleted sandboxes on their way out.
    pub(crate) fn trash(&self) -> PathBuf {
        self.root.join("trash")
    }

    /// Formatted, empty disk images, a folder a size.
    pub(crate) fn blanks(&self) -> PathBuf {
        self.root.join("blanks")
    }

    /// Ready sandboxes that nobody has asked for yet, and those on their way into or out of the pool, one file each.
    pub(crate) fn spares(&self) -> PathBuf {
        self.root.join("spares")
    }

    /// A file that takes room in order to give it back when other programs fill the disk.
    pub(crate) fn reserve_file(&self) -> PathBuf {
        self.root.join("reserve")
    }

    /// Folders that outlive sandboxes, one folder each.
    pub(crate) fn volumes(&self) -> PathBuf {
        self.root.join("volumes")
    }

    /// Layers that make templates trust the gateway, one folder each.
    pub(crate) fn trust(&self) -> PathBuf {
        self.root.join("trust")
    }

    /// Shared by those who look for such a layer; a sweep that takes some away holds it alone.
    pub(crate) fn trust_lock(&self) -> PathBuf {
        self.run().join("trust.lock")
    }

    /// The gateway's certificate, which the gateway makes.
    pub(crate) fn gateway_certificate(&self) -> PathBuf {
        self.root.join("gateway/ca.pem")
    }

    /// What the operator decided.
    pub(crate) fn settings(&self) -> PathBuf {
        self.root.join("settings.json")
    }

    /// The name of this data directory.
    pub(crate) fn installation_id(&self) -> PathBuf {
        self.root.join("installation-id")
    }

    /// What the pool is asked to keep ready.
    pub(crate) fn pool_settings(&self) -> PathBuf {
        self.root.join("pool.json")
    }

    /// Held by whoever fills the stock of empty disks.
    pub(crate) fn stock_lock(&self) -> PathBuf {
        self.run().join("stock.lock")
    }

    /// Held by whoever writes those settings.
    pub(crate) fn pool_settings_lock(&self) -> PathBuf {
        self.run().join("pool-settings.lock")
    }

    /// Held by whoever fills the pool or looks after it.
    pub(crate) fn pool_lock(&self) -> PathBuf {
        self.run().join("pool.lock")
    }

    /// The folder of one sandbox.
    pub(crate) fn sandbox(&self, id: &SandboxId) -> SandboxDir {
        SandboxDir {
            root: self.sandboxes().join(id.as_str()),
            run: self.run().join(id.as_str()),
        }
    }

    /// Where the agent of a sandbox answers.
    pub fn agent_socket(&self, id: &SandboxId) -> PathBuf {
        self.sandbox(id).agent_socket()
    }
}

/// The folder of one sandbox.
#[derive(Clone, Debug)]
pub(crate) struct SandboxDir {
    root: PathBuf,
    run: PathBuf,
}

impl SandboxDir {
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// What there is only while somebody works on it or it lives.
    pub(crate) fn run(&self) -> &Path {
        &self.run
    }

    /// Makes that folder, if it is not there.
    pub(crate) fn make_run(&self) -> io::Result<()> {
        match fs::DirBuilder::new().mode(0o700).create(&self.run) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => other,
        }
    }

    /// Its first process, from before it may run until it is gone.
    pub(crate) fn birth(&self) -> PathBuf {
        self.run.join("birth.json")
    }

    /// What the engine knows of it. Written whole, replaced by rename.
    pub(crate) fn record(&self) -> PathBuf {
        self.root.join("state.json")
    }

    /// Held by the worker that changes it.
    pub(crate) fn lock(&self) -> PathBuf {
        self.run.join("lock")
    }

    /// The agent's door on the host.
    pub(crate) fn agent_socket(&self) -> PathBuf {
        self.run.join("agent.sock")
    }

    /// What it wrote, in a file of bounded size.
    pub(crate) fn image(&self) -> PathBuf {
        self.root.join(crate::disk::IMAGE)
    }

    /// What it wrote, where images are not to be had.
    pub(crate) fn disk(&self) -> PathBuf {
        self.root.join("disk")
    }

    /// Where its root is put together when the host's `/mnt` cannot be used for that.
    pub(crate) fn stage(&self) -> PathBuf {
        self.root.join("stage")
    }
}
