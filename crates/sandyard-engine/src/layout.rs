//! The layout of the data directory.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sandyard_core::SandboxId;

use crate::runtime_dir;

/// The data directory: all state of the engine.
#[derive(Clone, Debug)]
pub struct DataDir {
    root: PathBuf,
}

impl DataDir {
    /// Names the directory. Nothing on disk is touched.
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

    /// Makes it and its folders, for its owner alone: layers hold setuid programs of templates.
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

    /// A number that distinguishes this data directory from others on the host.
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

    /// What is only valid until the host restarts.
    pub(crate) fn run(&self) -> PathBuf {
        self.root.join("run")
    }

    /// The launcher's socket.
    pub fn launcher_socket(&self) -> PathBuf {
        self.root.join("launcher.sock")
    }

    /// Held by the launcher of this directory.
    pub(crate) fn launcher_lock(&self) -> PathBuf {
        self.root.join("launcher.lock")
    }

    /// Shared by workers that make a sandbox's folder. A sweep that looks for abandoned folders holds it alone.
    pub(crate) fn creation_lock(&self) -> PathBuf {
        self.run().join("births.lock")
    }

    /// One folder for each sandbox.
    pub(crate) fn sandboxes(&self) -> PathBuf {
        self.root.join("sandboxes")
    }

    /// One file for each claimed range of user ids.
    pub(crate) fn id_ranges(&self) -> PathBuf {
        self.run().join("ids")
    }

    /// Folders of deleted sandboxes that are being removed.
    pub(crate) fn trash(&self) -> PathBuf {
        self.root.join("trash")
    }

    /// Formatted, empty disk images, one folder for each size.
    pub(crate) fn blanks(&self) -> PathBuf {
        self.root.join("blanks")
    }

    /// The marks of the pool's sandboxes, one file each.
    pub(crate) fn spares(&self) -> PathBuf {
        self.root.join("spares")
    }

    /// A file that reserves room, released when other programs fill the disk.
    pub(crate) fn reserve_file(&self) -> PathBuf {
        self.root.join("reserve")
    }

    /// Volumes, one folder each.
    pub(crate) fn volumes(&self) -> PathBuf {
        self.root.join("volumes")
    }

    /// Copies that a backup is about to take away.
    pub(crate) fn backup(&self) -> PathBuf {
        self.root.join("backup")
    }

    /// Layers that make templates trust the gateway, one folder each.
    pub(crate) fn trust(&self) -> PathBuf {
        self.root.join("trust")
    }

    /// Shared by workers that look for such a layer. A sweep that removes some holds it alone.
    pub(crate) fn trust_lock(&self) -> PathBuf {
        self.run().join("trust.lock")
    }

    /// The gateway's certificate, written by the gateway.
    pub(crate) fn gateway_certificate(&self) -> PathBuf {
        self.root.join("gateway/ca.pem")
    }

    /// Certificates of the operator that sandboxes trust as well, written by the gateway.
    pub(crate) fn sandbox_certificates(&self) -> PathBuf {
        self.root.join("gateway/sandbox-ca.pem")
    }

    /// The operator's settings.
    pub(crate) fn settings(&self) -> PathBuf {
        self.root.join("settings.json")
    }

    /// The id of this data directory.
    pub(crate) fn installation_id(&self) -> PathBuf {
        self.root.join("installation-id")
    }

    /// What the pool keeps ready.
    pub(crate) fn pool_settings(&self) -> PathBuf {
        self.root.join("pool.json")
    }

    /// Held by the process that makes empty disks.
    pub(crate) fn blanks_lock(&self) -> PathBuf {
        self.run().join("stock.lock")
    }

    /// Held by a worker that writes the pool's settings.
    pub(crate) fn pool_settings_lock(&self) -> PathBuf {
        self.run().join("pool-settings.lock")
    }

    /// Held by a worker that fills or sweeps the pool.
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

    /// The socket of a sandbox's agent.
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
    /// The folder for the copy of a sandbox.
    pub(crate) fn in_backup(data: &DataDir, id: &SandboxId) -> Self {
        let root = data.backup().join("sandboxes").join(id.as_str());
        Self {
            run: root.clone(),
            root,
        }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The folder for what exists only while it is live or being changed.
    pub(crate) fn run(&self) -> &Path {
        &self.run
    }

    /// Makes that folder if it does not exist.
    pub(crate) fn make_run(&self) -> io::Result<()> {
        match fs::DirBuilder::new().mode(0o700).create(&self.run) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => other,
        }
    }

    /// Its first process, noted before it may run and until it has ended.
    pub(crate) fn first_process(&self) -> PathBuf {
        self.run.join("birth.json")
    }

    /// Its record. Replaced by rename, so it is always whole.
    pub(crate) fn record(&self) -> PathBuf {
        self.root.join("state.json")
    }

    /// Held by the worker that changes it.
    pub(crate) fn lock(&self) -> PathBuf {
        self.run.join("lock")
    }

    /// The socket of its agent.
    pub(crate) fn agent_socket(&self) -> PathBuf {
        self.run.join("agent.sock")
    }

    /// Its disk, as an image of bounded size.
    pub(crate) fn image(&self) -> PathBuf {
        self.root.join(crate::disk::IMAGE)
    }

    /// Its disk, as a folder, where images cannot be mounted.
    pub(crate) fn disk(&self) -> PathBuf {
        self.root.join("disk")
    }

    /// Where its root is assembled if the host's `/mnt` cannot be used.
    pub(crate) fn stage(&self) -> PathBuf {
        self.root.join("stage")
    }
}
