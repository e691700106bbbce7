//! Templates in memory, and their manifests on disk.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Result, TemplateError};
use crate::host::Fingerprint;
use crate::store::unix_ms;

/// Format of the manifests this version writes.
pub(crate) const FORMAT: u32 = 1;

/// What sandboxes start from, with layers as paths on this host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Template {
    /// Its name in the store.
    pub name: String,
    /// How it was made.
    pub kind: Kind,
    /// When it was made, in milliseconds since 1970.
    pub created_unix_ms: u64,
    /// Bytes of file data in its layers. None for the host's programs, and for templates of older versions.
    #[serde(default)]
    pub size_bytes: Option<u64>,
    /// Mounts, parents before children.
    pub parts: Vec<Part>,
    /// What commands get that do not choose otherwise.
    #[serde(default, skip_serializing_if = "Defaults::is_empty")]
    pub defaults: Defaults,
}

impl Template {
    /// Every layer of every part.
    pub fn layers(&self) -> impl Iterator<Item = &Path> {
        self.parts
            .iter()
            .flat_map(|part| part.layers.iter().map(PathBuf::as_path))
    }
}

/// What an image says about the commands that run in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Defaults {
    /// Environment variables.
    pub env: BTreeMap<String, String>,
    /// Where commands start.
    pub workdir: Option<String>,
}

impl Defaults {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How a template was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
#[non_exhaustive]
pub enum Kind {
    /// From the host's own programs.
    Host,
    /// From a tree or an archive.
    Imported,
    /// From a sandbox.
    Snapshot {
        /// Name of the template of that sandbox.
        base: String,
    },
}

/// One overlay mount of a template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Where it is mounted inside: `/`, `/usr`, …
    pub target: PathBuf,
    /// Name of its directory on the sandbox's disk: `root`, `usr`, …
    pub key: String,
    /// Read-only trees, top first; never empty.
    pub layers: Vec<PathBuf>,
}

/// The content of a manifest. Layers of the store are names, so that the data directory can be moved.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) format: u32,
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) created_unix_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) size_bytes: Option<u64>,
    pub(crate) parts: Vec<ManifestPart>,
    #[serde(default, skip_serializing_if = "Defaults::is_empty")]
    pub(crate) defaults: Defaults,
    /// For the host template: the state of the host that it was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fingerprint: Option<Fingerprint>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ManifestPart {
    pub(crate) target: PathBuf,
    pub(crate) key: String,
    pub(crate) layers: Vec<LayerRef>,
}

/// Where a layer is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LayerRef {
    /// In the store.
    Layer(String),
    /// A directory of the host, such as `/usr`.
    Path(PathBuf),
}

impl Manifest {
    /// A template that is made now.
    pub(crate) fn new(name: &str, kind: Kind, parts: Vec<ManifestPart>, size_bytes: u64) -> Self {
        Self {
            format: FORMAT,
            name: name.to_owned(),
            kind,
            created_unix_ms: unix_ms(),
            size_bytes: Some(size_bytes),
            parts,
            defaults: Defaults::default(),
            fingerprint: None,
        }
    }

    /// Reads a manifest and rejects paths that lead out of the store.
    pub(crate) fn parse(path: &Path, bytes: &[u8]) -> Result<Self> {
        let bad = |source| TemplateError::Manifest {
            path: path.to_owned(),
            source,
        };
        // The format first: later ones may look different altogether.
        #[derive(Deserialize)]
        struct Head {
            format: u32,
        }
        let Head { format } = serde_json::from_slice(bytes).map_err(bad)?;
        if format != FORMAT {
            return Err(TemplateError::ManifestFormat {
                path: path.to_owned(),
                format_found: format,
                format_supported: FORMAT,
            });
        }
        let manifest: Self = serde_json::from_slice(bytes).map_err(bad)?;
        let sound = manifest.parts.iter().all(ManifestPart::is_sound);
        if !sound {
            let error = serde::de::Error::custom("a part has a bad key, target or layer");
            return Err(bad(error));
        }
        Ok(manifest)
    }

    /// The template with its layers found under `layers`.
    pub(crate) fn resolve(self, layers: &Path) -> Template {
        Template {
            name: self.name,
            kind: self.kind,
            created_unix_ms: self.created_unix_ms,
            size_bytes: self.size_bytes,
            defaults: self.defaults,
            parts: self
                .parts
                .into_iter()
                .map(|part| part.resolve(layers))
                .collect(),
        }
    }

    /// Names of the store's layers it needs.
    pub(crate) fn stored_layers(&self) -> impl Iterator<Item = &str> {
        let layers = self.parts.iter().flat_map(|part| part.layers.iter());
        layers.filter_map(|layer| match layer {
            LayerRef::Layer(id) => Some(id.as_str()),
            LayerRef::Path(_) => None,
        })
    }
}

impl ManifestPart {
    /// The part with its layers found under `layers`.
    pub(crate) fn resolve(self, layers: &Path) -> Part {
        let found = self.layers.iter().map(|layer| layer.resolve(layers));
        Part {
            layers: found.collect(),
            target: self.target,
            key: self.key,
        }
    }

    fn is_sound(&self) -> bool {
        let plain_target = self.target.is_absolute()
            && self
                .target
                .components()
                .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        let plain_layers = self.layers.iter().all(|layer| match layer {
            LayerRef::Layer(id) => is_file_name(id),
            LayerRef::Path(path) => path.is_absolute(),
        });
        plain_target && plain_layers && is_file_name(&self.key) && !self.layers.is_empty()
    }
}

impl LayerRef {
    /// The layer's tree; the other way round is [`LayerRef::of`].
    fn resolve(&self, layers: &Path) -> PathBuf {
        match self {
            Self::Layer(id) => layers.join(id).join("tree"),
            Self::Path(path) => path.clone(),
        }
    }

    /// What a resolved layer is called in a manifest.
    pub(crate) fn of(layers: &Path, path: &Path) -> Self {
        match layer_id(path) {
            Some(id) if layers.join(id).join("tree") == path => Self::Layer(id.to_owned()),
            _ => Self::Path(path.to_owned()),
        }
    }
}

/// Name of the layer whose tree is at `path`, wherever the store is.
pub(crate) fn layer_id(path: &Path) -> Option<&str> {
    if path.file_name()? != "tree" {
        return None;
    }
    path.parent()?
        .file_name()?
        .to_str()
        .filter(|id| is_file_name(id))
}

/// Says whether this is one plain, visible file name.
pub(crate) fn is_file_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    !name.is_empty() && name.len() <= 200 && !name.starts_with('.') && name.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(layer: &str, key: &str, target: &str) -> Result<Manifest> {
        let text = format!(
            r#"{{"format":1,"name":"x","kind":{{"type":"imported"}},"created_unix_ms":1,
               "parts":[{{"target":"{target}","key":"{key}","layers":[{{"layer":"{layer}"}}]}}]}}"#
        );
        Manifest::parse(Path::new("x.json"), text.as_bytes())
    }

    #[test]
    fn a_written_manifest_reads_back() {
        let manifest = parse("x-1", "root", "/").expect("sound");
        let template = manifest.resolve(Path::new("/data/layers"));
        assert_eq!(
            template.parts[0].layers,
            [Path::new("/data/layers/x-1/tree")]
        );
        let back = LayerRef::of(Path::new("/data/layers"), &template.parts[0].layers[0]);
        assert_eq!(back, LayerRef::Layer("x-1".into()));
        let other = LayerRef::of(Path::new("/data/layers"), Path::new("/usr"));
        assert_eq!(other, LayerRef::Path("/usr".into()));
    }

    #[test]
    fn manifests_that_lead_out_of_the_store_are_refused() {
        for (layer, key, target) in [
            ("../x", "root", "/"),
            ("..", "root", "/"),
            ("a/b", "root", "/"),
            ("x", "../root", "/"),
            ("x", "", "/"),
            ("x", "root", "/../etc"),
            ("x", "root", "usr"),
        ] {
            assert!(parse(layer, key, target).is_err(), "{layer} {key} {target}");
        }
    }

    #[test]
    fn later_formats_are_refused_by_number() {
        let error = Manifest::parse(Path::new("x.json"), br#"{"format":2}"#).expect_err("later");
        assert!(matches!(
            error,
            TemplateError::ManifestFormat {
                format_found: 2,
                ..
            }
        ));
    }

    #[test]
    fn templates_travel_as_json() {
        let template = parse("x-1", "root", "/")
            .expect("sound")
            .resolve(Path::new("/d"));
        let text = serde_json::to_string(&template).expect("to json");
        let back: Template = serde_json::from_str(&text).expect("from json");
        assert_eq!(back, template);
    }
}
