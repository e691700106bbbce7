//! The store of templates on disk. Any number of processes can use it at once.

mod sweep;

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};

pub use sweep::{SweepOptions, Swept};

use crate::error::{OperationExt, Result, TemplateError};
use crate::layer::{NewLayer, SharedLayer, make_dir, random_suffix};
use crate::manifest::{Kind, Manifest, Template};
use crate::name;

/// The templates and layers under one data directory.
#[derive(Clone, Debug)]
pub struct Store {
    templates: PathBuf,
    layers: PathBuf,
    durable: bool,
}

/// Whether a new template may replace one of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replace {
    Yes,
    No,
}

/// Holds the store's lock until dropped.
#[derive(Debug)]
pub(crate) struct Locked {
    _file: OwnedFd,
}

impl Store {
    /// Opens the store under `root`, making what is missing. Costs four system calls when nothing is.
    ///
    /// # Errors
    /// When its directories cannot be made.
    pub fn open(root: &Path) -> Result<Self> {
        let root = std::path::absolute(root).operation(|| format!("find `{}`", root.display()))?;
        let store = Self {
            templates: root.join("templates"),
            layers: root.join("layers"),
            durable: true,
        };
        for dir in [&root, &store.templates, &store.layers] {
            // For the owner alone: layers hold setuid programs and what sandboxes wrote.
            match make_dir(dir, 0o700) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                made => made.operation(|| format!("make directory `{}`", dir.display()))?,
            }
        }
        Ok(store)
    }

    /// The same store without waiting for the disk after each import and snapshot: for tests and throw-away data.
    #[must_use]
    pub fn without_sync(mut self) -> Self {
        self.durable = false;
        self
    }

    /// The template `name`, or `None`.
    ///
    /// # Errors
    /// [`TemplateError::BadName`], or when its manifest cannot be read.
    pub fn get(&self, name: &str) -> Result<Option<Template>> {
        let manifest = self.manifest(name)?;
        Ok(manifest.map(|manifest| manifest.resolve(&self.layers)))
    }

    /// All templates by name.
    ///
    /// # Errors
    /// When a manifest cannot be read.
    pub fn list(&self) -> Result<Vec<Template>> {
        let manifests = self.manifests()?;
        Ok(manifests
            .into_iter()
            .map(|manifest| manifest.resolve(&self.layers))
            .collect())
    }

    /// Removes the template `name`; false if it does not exist. Its layers stay until [`Store::sweep`] finds them
    /// unused: sandboxes and other templates may use them.
    ///
    /// # Errors
    /// [`TemplateError::BadName`], or when the manifest cannot be removed.
    pub fn remove(&self, name: &str) -> Result<bool> {
        name::check(name)?;
        let _locked = self.lock()?;
        self.retire_layers(name);
        let path = self.manifest_path(name);
        match fs::remove_file(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error).operation(|| format!("remove `{}`", path.display())),
        }
        self.sync_templates()?;
        Ok(true)
    }

    /// The manifest of `name`, or `None`.
    pub(crate) fn manifest(&self, name: &str) -> Result<Option<Manifest>> {
        name::check(name)?;
        self.read_manifest(&self.manifest_path(name))
    }

    pub(crate) fn manifests(&self) -> Result<Vec<Manifest>> {
        let listing = || format!("list `{}`", self.templates.display());
        let mut manifests = Vec::new();
        for entry in fs::read_dir(&self.templates).operation(listing)? {
            let path = entry.operation(listing)?.path();
            let file = path
                .file_name()
                .and_then(|file| file.to_str())
                .unwrap_or("");
            let is_manifest = file.strip_suffix(".json").is_some_and(name::is_valid_name);
            if is_manifest {
                manifests.extend(self.read_manifest(&path)?);
            }
        }
        manifests.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(manifests)
    }

    fn read_manifest(&self, path: &Path) -> Result<Option<Manifest>> {
        match fs::read(path) {
            Ok(bytes) => Manifest::parse(path, &bytes).map(Some),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).operation(|| format!("read `{}`", path.display())),
        }
    }

    /// Rejects names that a new template cannot have, before any work is done.
    pub(crate) fn check_new(&self, name: &str, replace: Replace) -> Result<()> {
        name::check(name)?;
        if name == crate::host::HOST_TEMPLATE {
            return Err(TemplateError::ReservedName { name: name.into() });
        }
        self.check_free(name, replace)
    }

    fn check_free(&self, name: &str, replace: Replace) -> Result<()> {
        let taken = replace == Replace::No && self.manifest_path(name).exists();
        if taken {
            return Err(TemplateError::Exists { name: name.into() });
        }
        Ok(())
    }

    /// An empty layer, which is removed unless [`Store::publish`] keeps it.
    pub(crate) fn new_layer(&self, stem: &str) -> Result<NewLayer> {
        let _locked = self.lock()?;
        NewLayer::create(&self.layers, stem)
    }

    /// The layer of this name that several templates may share, if there is one.
    pub(crate) fn shared_layer(&self, id: &str) -> Result<Option<SharedLayer>> {
        let _locked = self.lock()?;
        SharedLayer::open(&self.layers.join(id))
    }

    /// Keeps a finished layer under `id`, for every template that has the same one.
    pub(crate) fn share_layer(&self, layer: NewLayer, id: &str) -> Result<SharedLayer> {
        if self.durable {
            // It may be used long before a template is made with it.
            layer.sync()?;
        }
        let _locked = self.lock()?;
        layer.share(id)
    }

    /// Makes a template of finished layers. It exists from the rename on.
    pub(crate) fn publish(
        &self,
        manifest: Manifest,
        new_layers: Vec<NewLayer>,
        replace: Replace,
    ) -> Result<Template> {
        if self.syncs(&manifest.kind) {
            // One file system holds them all.
            new_layers.first().map(NewLayer::sync).transpose()?;
        }
        let _locked = self.lock()?;
        self.check_free(&manifest.name, replace)?;
        for id in manifest.stored_layers() {
            let layer = self.layers.join(id);
            if !layer.join("tree").is_dir() {
                return Err(TemplateError::LayerGone { layer });
            }
        }
        self.retire_layers(&manifest.name);
        self.write_manifest(&manifest)?;
        for layer in new_layers {
            layer.keep();
        }
        Ok(manifest.resolve(&self.layers))
    }

    fn write_manifest(&self, manifest: &Manifest) -> Result<()> {
        let path = self.manifest_path(&manifest.name);
        let temporary = self.templates.join(format!(".tmp-{}", random_suffix()?));
        let text =
            serde_json::to_vec_pretty(manifest).map_err(|source| TemplateError::Manifest {
                path: path.clone(),
                source,
            })?;
        let written = fs::File::create_new(&temporary).and_then(|mut file| {
            file.write_all(&text)?;
            if self.syncs(&manifest.kind) {
                file.sync_all()?;
            }
            fs::rename(&temporary, &path)
        });
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written.operation(|| format!("write `{}`", path.display()))?;
        if self.syncs(&manifest.kind) {
            self.sync_templates()?;
        }
        Ok(())
    }

    /// The host template is made again after each boot, so a power cut cannot hurt it, and creates wait for it.
    fn syncs(&self, kind: &Kind) -> bool {
        self.durable && *kind != Kind::Host
    }

    fn sync_templates(&self) -> Result<()> {
        if !self.durable {
            return Ok(());
        }
        let dir = fs::File::open(&self.templates).and_then(|dir| dir.sync_all());
        dir.operation(|| format!("write out `{}`", self.templates.display()))
    }

    /// Resets the age of a removed template's layers: another process may just have read the manifest and be about to
    /// mount them.
    fn retire_layers(&self, name: &str) {
        let Ok(Some(manifest)) = self.manifest(name) else {
            return;
        };
        for id in manifest.stored_layers() {
            let touched = fs::File::open(self.layers.join(id));
            let _ = touched.and_then(|dir| dir.set_modified(SystemTime::now()));
        }
    }

    pub(crate) fn lock(&self) -> Result<Locked> {
        self.lock_file(".lock")
    }

    pub(crate) fn lock_file(&self, name: &str) -> Result<Locked> {
        let path = self.templates.join(name);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let locking = || format!("lock `{}`", path.display());
        let file = open(&path, flags, Mode::RUSR | Mode::WUSR).operation(locking)?;
        loop {
            match flock(&file, FlockOperation::LockExclusive) {
                Err(rustix::io::Errno::INTR) => {}
                locked => {
                    locked.operation(locking)?;
                    return Ok(Locked { _file: file });
                }
            }
        }
    }

    pub(crate) fn layers_dir(&self) -> &Path {
        &self.layers
    }

    pub(crate) fn templates_dir(&self) -> &Path {
        &self.templates
    }

    fn manifest_path(&self, name: &str) -> PathBuf {
        self.templates.join(format!("{name}.json"))
    }
}

/// Milliseconds since 1970.
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
