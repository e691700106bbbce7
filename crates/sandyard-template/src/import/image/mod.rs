//! Templates from images, as `docker save` and OCI tools write them: an archive of layers, each an archive of its own.
//!
//! ```text
//! archive ─▶ unpack into a scratch layer ─▶ manifest, configuration (contents) ─▶ each layer ─▶ shared layer of its digest
//!                                                                        required files ─▶ layer of the template on top
//! ```
//! A layer is kept under the digest of its content, which is checked, so images that have layers in common share them.

mod contents;
mod digest;

use std::fs::File;
use std::path::PathBuf;

use super::unpack::Content;
use super::{ImportOptions, Imported, decompress, required_files, tar, unpack};
use crate::budget::Budget;
use crate::build::{Builder, ROOT};
use crate::error::{Result, TemplateError};
use crate::layer::SharedLayer;
use crate::manifest::{Defaults, Kind, LayerRef, Manifest, ManifestPart, Template};
use crate::snapshot::MAX_LAYERS;
use crate::store::{Replace, Store};
use crate::tree::Tree;
pub(super) use contents::is_image;
use contents::{Image, ImageLayer};
use digest::Digesting;

/// Sets the image's search path in login shells.
const PROFILE: &str = "etc/profile.d/sandyard-image.sh";
/// Layers that are left to templates made from an image.
const LAYERS_TO_ADD: usize = 10;

/// Makes template `name` of the image whose archive was unpacked into `scratch`.
pub(super) fn import(
    store: &Store,
    name: &str,
    scratch: &Tree,
    options: &ImportOptions<'_>,
    replace: Replace,
    budget: &mut Budget<'_>,
) -> Result<Imported> {
    let scratch_bytes = budget.counts.done.bytes;
    let image = Image::read(scratch)?;
    if image.layers.len() > MAX_LAYERS - LAYERS_TO_ADD {
        return Err(TemplateError::TooManyLayers {
            key: "root".to_owned(),
            layers: image.layers.len(),
            limit: MAX_LAYERS - LAYERS_TO_ADD,
        });
    }
    // Held until a manifest names them.
    let mut held = Vec::new();
    // Top first.
    let mut ids: Vec<String> = Vec::new();
    for layer in image.layers.iter().rev() {
        let id = layer.digest.replace(':', "-");
        // The same layer further down shows nothing that this one does not.
        if !ids.contains(&id) {
            held.push(add_layer(store, &id, layer, scratch, options, budget)?);
            ids.push(id);
        }
    }
    let mut layers: Vec<LayerRef> = ids.into_iter().map(LayerRef::Layer).collect();
    let top = store.new_layer(name)?;
    let below = below(store, &layers);
    let tree = top.tree()?;
    required_files::add_required_files(&tree, Some(&below), &options.requirements())?;
    if let Some(path) = image.defaults.env.get("PATH") {
        let mut build = Builder::new(&tree, options.owners).above(&below);
        build.file(PROFILE, profile(path), 0o644, ROOT)?;
    }
    layers.insert(0, LayerRef::Layer(top.id().to_owned()));
    budget.report()?;
    let part = ManifestPart {
        target: PathBuf::from("/"),
        key: "root".to_owned(),
        layers,
    };
    let size_bytes = budget.counts.done.bytes - scratch_bytes;
    let manifest = Manifest {
        defaults: image.defaults,
        ..Manifest::new(name, Kind::Imported, vec![part], size_bytes)
    };
    let template = store.publish(manifest, vec![top], replace)?;
    Ok(Imported {
        template,
        counts: budget.counts,
    })
}

/// What login shells read last: what they read before sets the search path of the distribution.
fn profile(path: &str) -> String {
    let quoted = path.replace('\'', r"'\''");
    format!("# The search path of the image.\nexport PATH=\"$HOME/.local/bin:\"'{quoted}'\n")
}

/// What a sandbox would see of these layers.
fn below(store: &Store, layers: &[LayerRef]) -> Template {
    let part = ManifestPart {
        target: PathBuf::from("/"),
        key: "root".to_owned(),
        layers: layers.to_vec(),
    };
    Template {
        name: String::new(),
        kind: Kind::Imported,
        created_unix_ms: 0,
        size_bytes: None,
        defaults: Defaults::default(),
        parts: vec![part.resolve(store.layers_dir())],
    }
}

/// The layer under its name `id`, unpacked unless the store has it already. Its content is checked in both cases: who names a
/// digest does not thereby get the layer of somebody else.
fn add_layer(
    store: &Store,
    id: &str,
    layer: &ImageLayer,
    scratch: &Tree,
    options: &ImportOptions<'_>,
    budget: &mut Budget<'_>,
) -> Result<SharedLayer> {
    let blob = contents::open_blob(scratch, &layer.path)?;
    if let Some(shared) = store.shared_layer(id)? {
        let mut plain = Digesting::new(decompress::open(blob)?);
        plain.read_to_end(budget)?;
        plain.check(&layer.digest)?;
        return Ok(shared);
    }
    unpack_layer(store, id, layer, blob, options, budget)
}

fn unpack_layer(
    store: &Store,
    id: &str,
    layer: &ImageLayer,
    blob: File,
    options: &ImportOptions<'_>,
    budget: &mut Budget<'_>,
) -> Result<SharedLayer> {
    let new = store.new_layer("image")?;
    let mut plain = Digesting::new(decompress::open(blob)?);
    let mut archive = tar::Archive::new(&mut plain);
    let tree = new.tree()?;
    unpack::unpack(
        &mut archive,
        Content::ImageLayer,
        &tree,
        options.owners,
        budget,
    )?;
    plain.read_to_end(budget)?;
    plain.check(&layer.digest)?;
    store.share_layer(new, id)
}
