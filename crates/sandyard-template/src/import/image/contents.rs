//! The files of an image's archive: which image is meant, and which files are its layers.
//!
//! Two layouts are common, often both in one archive: OCI's (`index.json`, and `blobs/` named by digest) and Docker's
//! (`manifest.json` with the paths of everything). All of it is untrusted: sizes are bounded, and paths stay in the archive.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, OFlags, fstat};
use rustix::io::Errno;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::error::{OperationExt, Result, TemplateError};
use crate::manifest::Defaults;
use crate::tree::Tree;

/// Most bytes of an index, a manifest or a configuration.
const MAX_JSON: u64 = 4 << 20;
/// Indexes inside indexes.
const MAX_DEPTH: usize = 4;

/// An image of the archive.
#[derive(Debug)]
pub(super) struct Image {
    /// Bottom first.
    pub(super) layers: Vec<ImageLayer>,
    pub(super) defaults: Defaults,
}

/// A layer as a file of the archive, possibly compressed.
#[derive(Debug)]
pub(super) struct ImageLayer {
    pub(super) path: PathBuf,
    /// Of its plain content, as `sha256:` and 64 hexadecimal digits.
    pub(super) digest: String,
}

#[derive(Deserialize)]
struct Index {
    manifests: Vec<Descriptor>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    digest: String,
    #[serde(default)]
    media_type: String,
    platform: Option<Platform>,
}

#[derive(Deserialize, PartialEq, Eq)]
struct Platform {
    architecture: String,
    os: String,
}

#[derive(Deserialize)]
struct Manifest {
    config: Descriptor,
    layers: Vec<Descriptor>,
}

/// An entry of Docker's `manifest.json`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SavedImage {
    config: PathBuf,
    layers: Vec<PathBuf>,
}

#[derive(Deserialize)]
struct Configuration {
    architecture: String,
    os: String,
    rootfs: RootFs,
    config: Option<CommandDefaults>,
}

/// Docker writes `null` for what an image does not say.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CommandDefaults {
    env: Option<Vec<String>>,
    working_dir: Option<String>,
}

#[derive(Deserialize)]
struct RootFs {
    diff_ids: Vec<String>,
}

impl Image {
    /// Finds the only image for this host.
    pub(super) fn read(archive: &Tree) -> Result<Self> {
        if let Some(index) = read_json::<Index>(archive, Path::new("index.json"))? {
            return Self::of_index(archive, index);
        }
        let missing = || {
            TemplateError::archive(
                "it has neither `index.json` nor `manifest.json`: it is cut off, or not an image",
            )
        };
        let saved: Vec<SavedImage> =
            read_json(archive, Path::new("manifest.json"))?.ok_or_else(missing)?;
        match <[SavedImage; 1]>::try_from(saved) {
            Ok([saved]) => Self::new(archive, &saved.config, saved.layers),
            Err(several) => Err(wrong_count(several.len())),
        }
    }

    fn of_index(archive: &Tree, mut index: Index) -> Result<Self> {
        for _ in 0..MAX_DEPTH {
            let here = this_platform();
            let fits = |descriptor: &Descriptor| {
                descriptor
                    .platform
                    .as_ref()
                    .is_none_or(|platform| *platform == here)
            };
            index.manifests.retain(fits);
            let count = index.manifests.len();
            let Ok([only]) = <[Descriptor; 1]>::try_from(index.manifests) else {
                return Err(wrong_count(count));
            };
            let path = blob(&only.digest)?;
            let is_index =
                only.media_type.contains("index") || only.media_type.contains("manifest.list");
            if !is_index {
                let manifest: Manifest = required(archive, &path)?;
                let layers = manifest.layers.iter().map(|layer| blob(&layer.digest));
                return Self::new(
                    archive,
                    &blob(&manifest.config.digest)?,
                    layers.collect::<Result<_>>()?,
                );
            }
            index = required(archive, &path)?;
        }
        Err(TemplateError::archive(
            "its indexes lead to further indexes",
        ))
    }

    fn new(archive: &Tree, configuration: &Path, paths: Vec<PathBuf>) -> Result<Self> {
        let Configuration {
            architecture,
            os,
            rootfs,
            config,
        } = required(archive, configuration)?;
        let (platform, here) = (Platform { architecture, os }, this_platform());
        if platform != here {
            return Err(TemplateError::archive(format!(
                "the image is for {}/{}, this host runs {}/{}",
                shorten(&platform.os),
                shorten(&platform.architecture),
                here.os,
                here.architecture
            )));
        }
        if paths.len() != rootfs.diff_ids.len() || paths.is_empty() {
            return Err(TemplateError::archive(format!(
                "its configuration names {} layers, its manifest {}",
                rootfs.diff_ids.len(),
                paths.len()
            )));
        }
        let layer = |(path, digest): (PathBuf, String)| {
            check_digest(&digest)?;
            Ok(ImageLayer { path, digest })
        };
        let layers = paths
            .into_iter()
            .zip(rootfs.diff_ids)
            .map(layer)
            .collect::<Result<_>>()?;
        let defaults = config.unwrap_or_default().into();
        Ok(Self { layers, defaults })
    }
}

impl From<CommandDefaults> for Defaults {
    fn from(config: CommandDefaults) -> Self {
        let split = |variable: String| {
            let (name, value) = variable.split_once('=')?;
            (!name.is_empty()).then(|| (name.to_owned(), value.to_owned()))
        };
        let is_place = |path: &String| path.len() > 1 && path.starts_with('/');
        Self {
            env: config.env.into_iter().flatten().filter_map(split).collect(),
            workdir: config.working_dir.filter(is_place),
        }
    }
}

/// Says whether a tree has the files of an image and none of a root file system.
pub(in crate::import) fn is_image(tree: &Tree) -> bool {
    let has = |path: &str| tree.open_in_root(Path::new(path), OFlags::PATH).is_ok();
    let of_images = ["oci-layout", "index.json", "manifest.json", "blobs/sha256"];
    of_images.into_iter().any(has) && !["bin", "etc", "usr"].into_iter().any(has)
}

/// Opens a layer's file.
pub(super) fn open_blob(archive: &Tree, path: &Path) -> Result<File> {
    open(archive, path)?.ok_or_else(|| missing(path))
}

fn this_platform() -> Platform {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    Platform {
        architecture: architecture.to_owned(),
        os: "linux".to_owned(),
    }
}

fn wrong_count(count: usize) -> TemplateError {
    let here = this_platform();
    TemplateError::archive(format!(
        "it has {count} images for {}/{} where one is needed",
        here.os, here.architecture
    ))
}

/// The path of the blob that a descriptor means.
fn blob(digest: &str) -> Result<PathBuf> {
    check_digest(digest)?;
    Ok(Path::new("blobs").join(digest.replace(':', "/")))
}

fn check_digest(digest: &str) -> Result<()> {
    match digest.strip_prefix("sha256:").is_some_and(is_hex) {
        true => Ok(()),
        false => Err(TemplateError::archive(format!(
            "`{}` is not a SHA-256 digest",
            shorten(digest)
        ))),
    }
}

fn is_hex(text: &str) -> bool {
    text.len() == 64
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn shorten(text: &str) -> String {
    text.chars().take(100).collect()
}

fn required<T: DeserializeOwned>(archive: &Tree, path: &Path) -> Result<T> {
    read_json(archive, path)?.ok_or_else(|| missing(path))
}

fn missing(path: &Path) -> TemplateError {
    TemplateError::archive(format!(
        "the image has no `{}`",
        shorten(&path.to_string_lossy())
    ))
}

/// `None` if there is no such file.
fn read_json<T: DeserializeOwned>(archive: &Tree, path: &Path) -> Result<Option<T>> {
    let Some(file) = open(archive, path)? else {
        return Ok(None);
    };
    let name = || shorten(&path.to_string_lossy());
    let mut text = Vec::new();
    file.take(MAX_JSON + 1)
        .read_to_end(&mut text)
        .operation(|| format!("read `{}`", name()))?;
    if text.len() as u64 > MAX_JSON {
        return Err(TemplateError::LimitExceeded {
            what: "bytes in a manifest or configuration of an image",
            limit: MAX_JSON,
        });
    }
    let parsed = serde_json::from_slice(&text);
    parsed
        .map(Some)
        .map_err(|error| TemplateError::archive(format!("`{}` of the image: {error}", name())))
}

fn open(archive: &Tree, path: &Path) -> Result<Option<File>> {
    let opening = || format!("open `{}` of the image", shorten(&path.to_string_lossy()));
    // Non-blocking, because a pipe of that name would block for ever.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = match archive.open_in_root(path, flags) {
        Ok(file) => file,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO) => return Ok(None),
        Err(error) => return Err(error).operation(opening),
    };
    let stat = fstat(&file).operation(opening)?;
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    Ok(is_file.then(|| File::from(file)))
}
