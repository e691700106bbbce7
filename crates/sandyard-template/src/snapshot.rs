//! Saves what a sandbox wrote as a new layer on each part of its template.

use std::ops::ControlFlow;
use std::path::PathBuf;

use crate::budget::{Budget, Counts, Limits};
use crate::copy::{Owners, Rules, copy_tree, everything};
use crate::error::{OperationExt, Result, TemplateError};
use crate::manifest::{Kind, LayerRef, Manifest, ManifestPart, Template};
use crate::store::{Replace, Store};
use crate::tree::{Tree, for_each_name};
use crate::xattr::Origin;

/// Maximum number of layers of one part. Overlayfs allows 500, but each one slows down failed lookups.
pub const MAX_LAYERS: usize = 100;

impl Store {
    /// Makes template `name` of `base` with the sandbox's upper directories, given by part key, copied on top.
    ///
    /// Parts without an upper directory, or with an empty one, stay as in `base`. The sandbox should be frozen or
    /// stopped: what changes meanwhile is copied as it is found. `base` must come from the store or the engine's own
    /// state, never from a client: its layer paths are used as they are.
    ///
    /// # Errors
    /// [`TemplateError::TooManyLayers`], [`TemplateError::Exists`], [`TemplateError::UnknownPart`] before anything is
    /// done; [`TemplateError::LayerGone`] when `base` was removed and swept meanwhile. Nothing is left behind.
    pub fn snapshot(
        &self,
        name: &str,
        base: &Template,
        upper_dirs: &[(String, PathBuf)],
        owners: Owners,
    ) -> Result<(Template, Counts)> {
        self.check_new(name, Replace::No)?;
        for (key, _) in upper_dirs {
            if !base.parts.iter().any(|part| part.key == *key) {
                return Err(TemplateError::UnknownPart {
                    template: base.name.clone(),
                    key: key.clone(),
                });
            }
        }
        let mut on_progress = |_| ControlFlow::Continue(());
        let mut budget = Budget::new(Limits::default(), &mut on_progress);
        let mut new_layers = Vec::new();
        let mut parts = Vec::new();
        for part in &base.parts {
            let mut layers: Vec<_> = part
                .layers
                .iter()
                .map(|layer| LayerRef::of(self.layers_dir(), layer))
                .collect();
            let upper = upper_dirs.iter().find(|(key, _)| *key == part.key);
            if let Some(upper) = open_unless_empty(upper.map(|(_, path)| path))? {
                if layers.len() >= MAX_LAYERS {
                    return Err(TemplateError::TooManyLayers {
                        key: part.key.clone(),
                        layers: layers.len() + 1,
                        limit: MAX_LAYERS,
                    });
                }
                let layer = self.new_layer(&format!("{name}-{}", part.key))?;
                let rules = Rules {
                    origin: Origin::Upper,
                    owners,
                    admit: &everything,
                };
                copy_tree(&upper, &layer.tree()?, &rules, &mut budget)?;
                layers.insert(0, LayerRef::Layer(layer.id().to_owned()));
                new_layers.push(layer);
            }
            parts.push(ManifestPart {
                target: part.target.clone(),
                key: part.key.clone(),
                layers,
            });
        }
        let counts = budget.counts;
        let kind = Kind::Snapshot {
            base: base.name.clone(),
        };
        let size_bytes = base.size_bytes.unwrap_or(0) + counts.done.bytes;
        let manifest = Manifest {
            defaults: base.defaults.clone(),
            ..Manifest::new(name, kind, parts, size_bytes)
        };
        let template = self.publish(manifest, new_layers, Replace::No)?;
        Ok((template, counts))
    }
}

fn open_unless_empty(upper: Option<&PathBuf>) -> Result<Option<Tree>> {
    let Some(path) = upper else {
        return Ok(None);
    };
    let tree = Tree::open(path)?;
    let mut empty = true;
    for_each_name::<rustix::io::Errno>(&tree, |_| {
        empty = false;
        Ok(())
    })
    .operation(|| format!("list `{}`", path.display()))?;
    Ok((!empty).then_some(tree))
}
