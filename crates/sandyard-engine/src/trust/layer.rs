//! Makes the layer that a plan describes.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use sandyard_template::{Folder, Owners};

use super::certificates::Certificates;
use super::plan::{List, NewFile, Plan, Text};
use crate::error::{EngineError, ErrorKind, Result};
use crate::layout::DataDir;
use crate::random;
use crate::sys::OperationExt;

/// How the names of unfinished ones begin.
const UNFINISHED: &str = ".new-";
/// Longer than any list.
const MOST_LIST_BYTES: u64 = 4 << 20;

/// Where in its folder the layer's tree is.
const TREE: &str = "tree";

/// The tree of the layer in `folder`.
pub(super) fn tree(folder: &Path) -> PathBuf {
    folder.join(TREE)
}

/// Makes it aside and puts it in place whole. Somebody who was quicker made the same.
pub(super) fn make(
    data: &DataDir,
    folder: &Path,
    plan: &Plan,
    certificates: &Certificates,
    owners: Owners,
) -> Result<()> {
    let aside = data
        .trust()
        .join(format!("{UNFINISHED}{}", random::token()?));
    let made = fill(&aside, plan, certificates, owners)
        .and_then(|()| Ok(put_in_place(&aside, folder).operation("make", folder.display())?));
    // Gone, unless something failed or somebody was quicker.
    let _ = sandyard_template::remove_tree(&aside);
    made
}

fn fill(aside: &Path, plan: &Plan, certificates: &Certificates, owners: Owners) -> Result<()> {
    let root = tree(aside);
    for folder in [aside, &root] {
        make_folder(folder).operation("make", folder.display())?;
    }
    let lists: Vec<Vec<u8>> = plan
        .lists
        .iter()
        .map(|list| added(list, certificates))
        .collect::<Result<_>>()?;
    let (pem, policy) = (certificates.pem(), certificates.policy());
    for file in &plan.files {
        let text = match file.text {
            Text::Certificates => pem.as_bytes(),
            Text::Single(index) => certificates.single(index).as_bytes(),
            Text::List(index) => &lists[index][..],
            Text::Policy => policy.as_bytes(),
        };
        write(&root, &plan.target, file, text).operation("write", file.path.display())?;
    }
    // Last, and from the bottom up: they may allow us less than we need.
    let mut folders: Vec<&Folder> = plan.files.iter().flat_map(|file| &file.folders).collect();
    folders.sort_by(|a, b| b.path.cmp(&a.path));
    folders.dedup();
    for folder in folders {
        make_like(&root, &plan.target, folder, owners).operation("make", folder.path.display())?;
    }
    Ok(())
}

/// The template's list and our certificates, which it may hold already: from a sandbox that made it anew.
fn added(list: &List, certificates: &Certificates) -> Result<Vec<u8>> {
    let read = list.file.read(MOST_LIST_BYTES);
    let text = read.map_err(|error| EngineError::template("reading certificates", &error))?;
    let Some(mut text) = text else {
        let message = "the template's list of certificates is longer than 4 MiB";
        return Err(EngineError::new(ErrorKind::Invalid, message));
    };
    let missing = certificates.missing_in(&text);
    text.extend(missing);
    Ok(text)
}

fn write(root: &Path, target: &Path, file: &NewFile, text: &[u8]) -> io::Result<()> {
    let path = within(root, target, &file.path)?;
    let mut parent = root.to_owned();
    for name in path
        .parent()
        .and_then(|parent| parent.strip_prefix(root).ok())
        .into_iter()
        .flatten()
    {
        parent.push(name);
        match make_folder(&parent) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => other?,
        }
    }
    let mut written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)?;
    written.write_all(text)?;
    written.set_permissions(fs::Permissions::from_mode(0o644))?;
    // It is used for as long as it exists: a power failure must not leave an empty one.
    written.sync_all()
}

/// Makes a directory as the template has it: what is on top says what it is like.
fn make_like(root: &Path, target: &Path, folder: &Folder, owners: Owners) -> io::Result<()> {
    let path = within(root, target, &folder.path)?;
    if owners == Owners::Keep {
        chown(&path, Some(folder.uid), Some(folder.gid))?;
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(folder.mode))
}

/// Where a path inside is in the tree of the layer.
fn within(root: &Path, target: &Path, path: &Path) -> io::Result<PathBuf> {
    let inside = path.strip_prefix(target);
    Ok(root.join(inside.map_err(io::Error::other)?))
}

fn make_folder(path: &Path) -> io::Result<()> {
    fs::create_dir(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

fn put_in_place(aside: &Path, folder: &Path) -> io::Result<()> {
    use io::ErrorKind::{AlreadyExists, DirectoryNotEmpty};
    match fs::rename(aside, folder) {
        Err(error) if matches!(error.kind(), AlreadyExists | DirectoryNotEmpty) => Ok(()),
        other => other,
    }
}
