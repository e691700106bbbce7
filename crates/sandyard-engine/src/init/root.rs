//! The sandbox's root: overlays of its template's layers and its own disk.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::mount::MountFlags;
use sandyard_template::Part;

use super::InitPlan;
use crate::boot_id;
use crate::error::{EngineError, ErrorKind, Result};
use crate::sys::{OperationExt, mount};

/// mount(2) takes one page, with a zero at its end.
const MAX_OPTION_BYTES: usize = 4094;

/// Name of the boot id file on the stage, shown in `/proc`.
pub(super) const BOOT_ID: &str = "boot_id";

/// Assembles the root on the stage. Returns its path, and the trees that do not belong to it.
///
/// `trees` are the disk, then every layer of every part in order, then others. If this process can use paths of the host, disk and
/// layers are not among them.
///
/// The options of a mount are visible inside, so overlays get paths relative to the stage, which reveal no path of the host.
pub(super) fn assemble(
    plan: &InitPlan<'_>,
    trees: Vec<OwnedFd>,
    limitations: &mut Vec<String>,
) -> Result<(PathBuf, Vec<OwnedFd>)> {
    mount::make_everything_private()?;
    mount::file_system(
        "tmpfs",
        &plan.stage,
        MountFlags::NOSUID | MountFlags::NODEV,
        "mode=755,size=1m",
    )?;
    rustix::process::chdir(&plan.stage).operation("enter", plan.stage.display())?;
    let root = plan.stage.join("root");
    make_dir(&root)?;
    let mut sources = Sources {
        trees: trees.into_iter(),
        count: 0,
    };
    let disk = match &plan.disk {
        Some(disk) => sources.link(disk)?,
        None => sources.attach_next()?,
    };
    // On the stage: a bind mount shows the path of its source inside.
    fs::write(BOOT_ID, boot_id::generate()?).operation("write", BOOT_ID)?;
    for part in &plan.template.parts {
        let layers = part
            .layers
            .iter()
            .map(|layer| match plan.disk {
                Some(_) => sources.link(layer),
                None => sources.attach_next(),
            })
            .collect::<Result<Vec<_>>>()?;
        let is_trusting = plan.trusting == Some(part.key.as_str());
        let mut options = options(part, &layers, &disk);
        if options.len() > MAX_OPTION_BYTES && is_trusting {
            // A sandbox that could start without a gateway must start with one.
            options = self::options(part, &layers[1..], &disk);
            limitations.push(
                "programs inside do not trust the gateway: the template has too many layers"
                    .to_owned(),
            );
        }
        mount_part(part, &options, &root)?;
    }
    let run = root.join("run");
    if is_real_folder(&root, Path::new("run")) {
        mount::file_system(
            "tmpfs",
            &run,
            MountFlags::NOSUID | MountFlags::NODEV,
            "mode=755,size=64m",
        )?;
    }
    Ok((root, sources.trees.collect()))
}

/// A folder inside, to mount on. The sandbox may have replaced it with a link, which would lead to the host as long as the root is
/// not entered.
pub(super) fn folder(root: &Path, path: &Path) -> Result<PathBuf> {
    if is_real_folder(root, path) {
        return Ok(root.join(path));
    }
    let message = format!("`/{}` inside is not a folder", path.display());
    Err(EngineError::new(ErrorKind::Conflict, message).hint(
        "the sandbox replaced or removed it; its other files can still be saved with a snapshot",
    ))
}

fn is_real_folder(root: &Path, path: &Path) -> bool {
    let Ok(root) = rustix::fs::open(
        root,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    ) else {
        return false;
    };
    if path.as_os_str().is_empty() {
        return true;
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    rustix::fs::openat2(root, path, flags, Mode::empty(), beneath).is_ok()
}

/// Makes `root` the root of this mount namespace.
pub(super) fn enter(root: &Path) -> Result<()> {
    Ok(mount::pivot_into(root)?)
}

fn mount_part(part: &Part, options: &str, root: &Path) -> Result<()> {
    let path = part.target.strip_prefix("/").unwrap_or(&part.target);
    let target = folder(root, path)?;
    if options.len() > MAX_OPTION_BYTES {
        return Err(EngineError::new(
            ErrorKind::Invalid,
            format!("template part `{}` has too many layers", part.key),
        )
        .hint(
            "use a template with fewer layers: export the files and import them as a new template",
        ));
    }
    mount::file_system("overlay", &target, MountFlags::NODEV, options)?;
    Ok(())
}

fn options(part: &Part, layers: &[PathBuf], disk: &Path) -> String {
    let upper = disk.join(&part.key).join("upper");
    let work = disk.join(&part.key).join("work");
    let lower = layers
        .iter()
        .map(|path| escape(path))
        .collect::<Vec<_>>()
        .join(":");
    // userxattr: overlayfs marks files with user.* attributes, which root of a user namespace may set.
    format!(
        "lowerdir={lower},upperdir={},workdir={},userxattr",
        escape(&upper),
        escape(&work)
    )
}

/// Escapes characters with a meaning in overlayfs options.
fn escape(path: &Path) -> String {
    let mut text = String::new();
    for character in path.to_string_lossy().chars() {
        if matches!(character, ':' | ',' | '\\') {
            text.push('\\');
        }
        text.push(character);
    }
    text
}

/// Gives disk and layers numbered names on the stage, which is the working directory.
struct Sources {
    trees: std::vec::IntoIter<OwnedFd>,
    count: usize,
}

impl Sources {
    /// Attaches the next tree: a detached mount cannot be a layer on every kernel.
    fn attach_next(&mut self) -> Result<PathBuf> {
        let tree = self
            .trees
            .next()
            .ok_or_else(|| EngineError::new(ErrorKind::Failed, "the worker sent too few mounts"))?;
        let name = self.next_name();
        make_dir(&name)?;
        mount::attach(tree, &name)?;
        Ok(name)
    }

    /// Gives a folder of the host a name on the stage.
    fn link(&mut self, folder: &Path) -> Result<PathBuf> {
        let name = self.next_name();
        symlink(folder, &name).operation("link to", folder.display())?;
        Ok(name)
    }

    fn next_name(&mut self) -> PathBuf {
        self.count += 1;
        PathBuf::from((self.count - 1).to_string())
    }
}

fn make_dir(path: &Path) -> Result<()> {
    Ok(fs::create_dir(path).operation("make", path.display())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_path_cannot_add_an_option() {
        assert_eq!(
            escape(Path::new("/a,upperdir=/etc:b\\c")),
            r"/a\,upperdir=/etc\:b\\c"
        );
    }
}
