//! Lists what a sandbox changed, by comparing its upper directories with its template's layers.
//!
//! An upper directory is the list of changes, but does not say whether a name existed before. For that the name is
//! looked up in the layers, as overlayfs does.

mod walk;

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, Serializer};

use crate::copy::Owners;
use crate::error::{Result, TemplateError};
use crate::manifest::Template;
use crate::tree::Tree;

/// One changed path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Path inside the sandbox. As JSON, bytes that are no UTF-8 are replaced.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    /// What happened to it.
    pub kind: ChangeKind,
    /// What it is, or was before it was deleted.
    pub file_type: FileType,
    /// Its size, or what it was before it was deleted; 0 for all but files and links.
    pub size_bytes: u64,
}

/// What happened to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It is not in the template.
    Added,
    /// Content, kind, mode, owner or attributes differ; for directories not merely the content.
    Modified,
    /// It is in the template only. A deleted directory is one change, whatever was in it.
    Deleted,
}

/// What a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileType {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A pipe, socket or device.
    Other,
}

/// All changes of a sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diff {
    /// Sorted by the bytes of the path.
    pub changes: Vec<Change>,
    /// There are more changes than [`DiffOptions`] allow, and these are some of them.
    pub truncated: bool,
}

/// Bounds of a diff, and what counts.
#[derive(Clone, Copy, Debug)]
pub struct DiffOptions {
    /// Most changes returned.
    pub max_changes: usize,
    /// Maximum number of entries read.
    pub max_entries: usize,
    /// Whether another owner is a change. Not where all owners are one user, as in rootless sandboxes over the host's
    /// programs: there every copied file has another owner than the original.
    pub compare_owners: bool,
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self {
            max_changes: 100_000,
            max_entries: 2_000_000,
            compare_owners: Owners::of_this_process() == Owners::Keep,
        }
    }
}

/// What the upper directories, given by part key, change of `template`.
///
/// # Errors
/// [`TemplateError::UnknownPart`], or when something cannot be read.
pub fn diff(template: &Template, upper_dirs: &[(String, PathBuf)]) -> Result<Diff> {
    diff_with(template, upper_dirs, &DiffOptions::default())
}

/// [`diff`] with other bounds.
///
/// # Errors
/// As of [`diff`].
pub fn diff_with(
    template: &Template,
    upper_dirs: &[(String, PathBuf)],
    options: &DiffOptions,
) -> Result<Diff> {
    let mut changes = walk::Changes::new(*options);
    for (key, upper) in upper_dirs {
        let Some(part) = template.parts.iter().find(|part| part.key == *key) else {
            return Err(TemplateError::UnknownPart {
                template: template.name.clone(),
                key: key.clone(),
            });
        };
        let layers: Vec<_> = part
            .layers
            .iter()
            .map(|layer| Tree::open(layer))
            .collect::<Result<_, _>>()?;
        walk::walk(&Tree::open(upper)?, &layers, &part.target, &mut changes)?;
    }
    let mut diff = changes.finish();
    let bytes = |change: &Change| change.path.as_os_str().as_bytes().to_owned();
    diff.changes.sort_by_cached_key(bytes);
    Ok(diff)
}

fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}
