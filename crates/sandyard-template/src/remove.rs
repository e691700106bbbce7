//! Removes a layer's tree, however deep and whatever its modes.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, chmodat, renameat, unlinkat};
use rustix::io::Errno;

use crate::error::{OperationExt, Result, TemplateError};
use crate::tree::{Tree, for_each_name, stat_entry};

/// Directories deeper than this many bytes of path are first moved up to the top: an archive can make, through links,
/// trees deeper than any path the kernel accepts.
const MOVE_UP_BYTES: usize = 2000;

/// Removes the directory `path` and all in it, however deep and whatever its modes. Missing is fine.
///
/// # Errors
/// When something in it cannot be removed.
pub fn remove_tree(path: &Path) -> Result<()> {
    // The directory may have been left without rights; as its owner we may give them back.
    let _ = chmodat(rustix::fs::CWD, path, Mode::RWXU, AtFlags::empty());
    let tree = match Tree::open(path) {
        Ok(tree) => tree,
        Err(TemplateError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    clear(&tree).operation(|| format!("remove what is in `{}`", path.display()))?;
    std::fs::remove_dir(path).operation(|| format!("remove directory `{}`", path.display()))
}

fn clear(tree: &Tree) -> Result<(), Errno> {
    let mut rel = PathBuf::new();
    let mut moved = 0_u64;
    let mut frames = vec![Vec::new()];
    let mut up = enter(tree, &rel, &mut frames[0], &mut moved)?;
    frames[0].append(&mut up);
    loop {
        let Some(name) = frames.last_mut().and_then(Vec::pop) else {
            frames.pop();
            if frames.is_empty() {
                return Ok(());
            }
            let parent = tree.open_dir(rel.parent().unwrap_or(Path::new("")))?;
            unlinkat(
                parent,
                rel.file_name().unwrap_or_default(),
                AtFlags::REMOVEDIR,
            )?;
            rel.pop();
            continue;
        };
        rel.push(name);
        let mut below = Vec::new();
        let mut up = enter(tree, &rel, &mut below, &mut moved)?;
        frames[0].append(&mut up);
        frames.push(below);
    }
}

/// Unlinks all in a directory but sub-directories, which it collects; returns those it moved to the top.
fn enter(
    tree: &Tree,
    rel: &Path,
    below: &mut Vec<OsString>,
    moved: &mut u64,
) -> Result<Vec<OsString>, Errno> {
    let dir = tree.open_dir(rel)?;
    let mut up = Vec::new();
    for_each_name::<Errno>(&dir, |name| {
        let Some(stat) = stat_entry(&dir, name)? else {
            return Ok(());
        };
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            return unlinkat(&dir, name, AtFlags::empty());
        }
        if stat.st_mode & 0o700 != 0o700 {
            chmodat(&dir, name, Mode::RWXU, AtFlags::empty())?;
        }
        if rel.as_os_str().len() + name.len() > MOVE_UP_BYTES {
            up.push(move_up(tree, &dir, name, moved)?);
        } else {
            below.push(name.to_owned());
        }
        Ok(())
    })?;
    Ok(up)
}

fn move_up(tree: &Tree, dir: &OwnedFd, name: &OsStr, moved: &mut u64) -> Result<OsString, Errno> {
    loop {
        *moved += 1;
        let top = OsString::from(format!(".up-{moved}"));
        match renameat(dir, name, tree, &top) {
            // Somebody's own directory of that name; it is going too, in its turn.
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
            Err(error) => return Err(error),
            Ok(()) => return Ok(top),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use rustix::fs::mkdirat;

    use super::*;

    #[test]
    fn trees_deeper_than_any_path_are_removed() {
        let temp = tempfile::tempdir().expect("temp dir");
        let root = temp.path().join("tree");
        std::fs::create_dir(&root).expect("mkdir");
        let name = "d".repeat(200);
        let mut dir = Tree::open(&root).expect("open");
        // Each level is opened from the one before: no path reaches the last.
        for _ in 0..60 {
            mkdirat(&dir, &name, Mode::RWXU).expect("mkdirat");
            let path = PathBuf::from(format!(
                "/proc/self/fd/{}/{name}",
                std::os::fd::AsRawFd::as_raw_fd(&std::os::fd::AsFd::as_fd(&dir))
            ));
            std::fs::write(path.join("file"), "x").expect("write");
            dir = Tree::open(&path).expect("open level");
        }
        drop(dir);
        remove_tree(&root).expect("remove");
        assert!(!root.exists());
    }

    #[test]
    fn directories_without_rights_are_removed() {
        let temp = tempfile::tempdir().expect("temp dir");
        let root = temp.path().join("tree");
        std::fs::create_dir_all(root.join("a/b")).expect("mkdir");
        std::fs::write(root.join("a/b/c"), "x").expect("write");
        for dir in ["a/b", "a"] {
            std::fs::set_permissions(root.join(dir), PermissionsExt::from_mode(0o000))
                .expect("chmod");
        }
        remove_tree(&root).expect("remove");
        assert!(!root.exists());
    }

    #[test]
    fn links_are_removed_and_not_followed() {
        let temp = tempfile::tempdir().expect("temp dir");
        let (root, outside) = (temp.path().join("tree"), temp.path().join("outside"));
        std::fs::create_dir(&root).expect("mkdir");
        std::fs::create_dir(&outside).expect("mkdir");
        std::fs::write(outside.join("kept"), "x").expect("write");
        std::os::unix::fs::symlink(&outside, root.join("link")).expect("symlink");
        remove_tree(&root).expect("remove");
        assert!(outside.join("kept").exists());
    }

    #[test]
    fn a_missing_tree_is_fine() {
        let temp = tempfile::tempdir().expect("temp dir");
        remove_tree(&temp.path().join("none")).expect("remove");
    }
}
