//! Templates from a directory tree or a tar archive.
//!
//! ```text
//! reader ─▶ decompress ─▶ tar (header, pax) ─▶ unpack ─▶ layer ─▶ required_files ─▶ published
//!                                    (an image) ─────▶ image ─▶
//! directory ──────────────────────────────────▶ tree ──▶
//! ```
//! Archives may be hostile: names and links always resolve inside the layer, sizes are bounded, and a failure leaves
//! nothing behind.

mod decompress;
mod header;
mod image;
mod pax;
mod required_files;
mod tar;
mod tree;
mod unpack;

use std::fmt;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::budget::{Budget, Counts, Limits, Progress};
use crate::copy::Owners;
use crate::error::Result;
use crate::manifest::{Kind, LayerRef, Manifest, ManifestPart, Template};
use crate::store::{Replace, Store};
use crate::tree::Tree;
use required_files::Requirements;
use unpack::Content;

/// How to import.
pub struct ImportOptions<'a> {
    /// The owners of the files.
    pub owners: Owners,
    /// Replace a template of the same name, instead of failing.
    pub replace: bool,
    /// Bounds of what is imported.
    pub limits: Limits,
    /// Add the account `user` with `sudo`, and `/workspace`, where missing.
    pub add_user: bool,
    /// Program installed as setuid `sudo` where the tree has none; see [`crate::HostOptions::shim_program`].
    pub shim_program: Option<PathBuf>,
    /// Called regularly with the progress; breaking stops the import.
    pub on_progress: Option<&'a mut dyn FnMut(Progress) -> ControlFlow<()>>,
}

impl ImportOptions<'_> {
    /// The usual: a new name, usual limits, with `user`.
    pub fn new(owners: Owners) -> Self {
        Self {
            owners,
            replace: false,
            limits: Limits::default(),
            add_user: true,
            shim_program: None,
            on_progress: None,
        }
    }
}

impl ImportOptions<'_> {
    fn requirements(&self) -> Requirements<'_> {
        Requirements {
            owners: self.owners,
            user: self.add_user,
            shim: self.shim_program.as_deref(),
        }
    }
}

impl fmt::Debug for ImportOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImportOptions")
            .field("owners", &self.owners)
            .field("replace", &self.replace)
            .field("limits", &self.limits)
            .field("add_user", &self.add_user)
            .field("shim_program", &self.shim_program)
            .finish_non_exhaustive()
    }
}

/// A finished import.
#[derive(Debug)]
#[non_exhaustive]
pub struct Imported {
    /// The new template.
    pub template: Template,
    /// What it took and left.
    pub counts: Counts,
}

impl Store {
    /// Makes template `name` of the directory tree at `dir`: a root file system or an image in OCI's layout. Other file systems
    /// mounted in it are left out.
    ///
    /// # Errors
    /// By name ([`TemplateError::BadName`](crate::TemplateError::BadName), [`TemplateError::Exists`](crate::TemplateError::Exists)), size ([`TemplateError::LimitExceeded`](crate::TemplateError::LimitExceeded)) or what
    /// the system refused. Nothing is left behind.
    pub fn import_tree(
        &self,
        name: &str,
        dir: &Path,
        options: ImportOptions<'_>,
    ) -> Result<Imported> {
        let source = Tree::open(dir)?;
        let owners = options.owners;
        self.import(name, options, |root, budget| {
            tree::copy(&source, root, owners, self.layers_dir(), budget)
        })
    }

    /// Makes template `name` of a tar archive: plain, or compressed with gzip, zstd or xz, whatever its name says. The archive has
    /// a root file system or an image, as `docker save` and OCI tools write them.
    ///
    /// # Errors
    /// As of [`Store::import_tree`], and [`TemplateError::BadArchive`](crate::TemplateError::BadArchive).
    pub fn import_tar(
        &self,
        name: &str,
        reader: impl Read,
        options: ImportOptions<'_>,
    ) -> Result<Imported> {
        let owners = options.owners;
        self.import(name, options, |root, budget| {
            let mut plain = decompress::open(reader)?;
            let mut archive = tar::Archive::new(&mut plain);
            unpack::unpack(&mut archive, Content::Files, root, owners, budget)
        })
    }

    /// Makes a template of what `fill` unpacks: of its files, or of the layers that are among them if it is an image.
    fn import(
        &self,
        name: &str,
        mut options: ImportOptions<'_>,
        fill: impl FnOnce(&Tree, &mut Budget<'_>) -> Result<()>,
    ) -> Result<Imported> {
        let replace = if options.replace {
            Replace::Yes
        } else {
            Replace::No
        };
        self.check_new(name, replace)?;
        let mut ignore = |_| ControlFlow::Continue(());
        let on_progress = options.on_progress.take().unwrap_or(&mut ignore);
        let mut budget = Budget::new(options.limits, on_progress);
        let layer = self.new_layer(name)?;
        let root = layer.tree()?;
        fill(&root, &mut budget)?;
        if image::is_image(&root) {
            return image::import(self, name, &root, &options, replace, &mut budget);
        }
        required_files::add_required_files(&root, None, &options.requirements())?;
        budget.report()?;
        let counts = budget.counts;
        let part = ManifestPart {
            target: PathBuf::from("/"),
            key: "root".to_owned(),
            layers: vec![LayerRef::Layer(layer.id().to_owned())],
        };
        let manifest = Manifest::new(name, Kind::Imported, vec![part], counts.done.bytes);
        let template = self.publish(manifest, vec![layer], replace)?;
        Ok(Imported { template, counts })
    }
}
