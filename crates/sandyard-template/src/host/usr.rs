//! The synthetic layer over the host's `/usr`: what is missing there, and what is not for sandboxes to see.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{HostOptions, etc};
use crate::build::{Builder, ROOT};
use crate::error::{OperationExt, Result};
use crate::layer::NewLayer;
use crate::overlay;
use crate::xattr;

/// Where an administrator configures what was installed by hand; shown filtered, as `/etc` is.
pub(super) const LOCAL_ETC: &str = "usr/local/etc";

/// Package managers of hosts. Their records and sources are not shown to sandboxes, so they fail with messages that help nobody.
const PACKAGE_MANAGERS: [&str; 7] = ["apt", "apt-get", "dnf", "yum", "zypper", "pacman", "apk"];
/// Where `PATH` finds a program before the host's.
const LOCAL_BIN: &str = "usr/local/bin";

/// Fills the layer; false when there is nothing to put in.
pub(super) fn fill(layer: &NewLayer, options: &HostOptions) -> Result<bool> {
    let root = layer.tree()?;
    let mut build = Builder::new(&root, options.owners);
    let mut filled = false;
    let shim = options.shim_program.as_deref();
    if let Some(program) = shim.filter(|_| options.prefer_shim || !has_sudo(options)) {
        build.dir("bin", 0o755, ROOT)?;
        build.install("bin/sudo", program, 0o4755)?;
        filled = true;
    }
    if needs_python(options) {
        build.link("bin/python", "python3")?;
        filled = true;
    }
    let replaced = replaced_package_managers(options);
    if !replaced.is_empty() {
        build.dir("local", 0o755, ROOT)?;
        build.dir("local/bin", 0o755, ROOT)?;
        filled = true;
    }
    for name in replaced {
        let message = include_str!("skel/package-manager");
        build.file(&format!("local/bin/{name}"), message, 0o755, ROOT)?;
    }
    let local_etc = options.host(LOCAL_ETC);
    let is_visible = local_etc
        .symlink_metadata()
        .is_ok_and(|metadata| metadata.is_dir() && metadata.permissions().mode() & 0o005 == 0o005);
    if local_etc.exists() {
        build.dir("local", 0o755, ROOT)?;
        build.dir("local/etc", 0o755, ROOT)?;
        if is_visible {
            etc::copy_dir(&root, &local_etc, Path::new("/local/etc"), &[])?;
        }
        hide_below(layer)?;
        filled = true;
    }
    Ok(filled)
}

/// Says whether the host has `sudo` itself.
pub(super) fn has_sudo(options: &HostOptions) -> bool {
    options.host("usr/bin/sudo").exists()
}

/// Says whether `python` is missing beside `python3`.
pub(super) fn needs_python(options: &HostOptions) -> bool {
    let has = |name: &str| options.host(name).symlink_metadata().is_ok();
    has("usr/bin/python3") && !has("usr/bin/python") && !has("usr/local/bin/python")
}

/// The host's package managers that are replaced by a message about what to do.
pub(super) fn replaced_package_managers(options: &HostOptions) -> Vec<&'static str> {
    let metadata = |path: &str| options.host(path).symlink_metadata();
    // A directory of this layer would hide what a link leads to.
    let is_free = |path: &str| metadata(path).map_or(true, |found| found.is_dir());
    if !is_free("usr/local") || !is_free(LOCAL_BIN) {
        return Vec::new();
    }
    let is_replaced = |name: &&str| {
        let is_installed = ["usr/bin", "usr/sbin"]
            .iter()
            .any(|folder| metadata(&format!("{folder}/{name}")).is_ok());
        is_installed && metadata(&format!("{LOCAL_BIN}/{name}")).is_err()
    };
    PACKAGE_MANAGERS.into_iter().filter(is_replaced).collect()
}

fn hide_below(layer: &NewLayer) -> Result<()> {
    let path = layer.tree_path().join("local/etc");
    let hiding = || format!("hide what is below `{}`", path.display());
    let dir = std::fs::File::open(&path).operation(hiding)?;
    xattr::set(&dir, overlay::OPAQUE.as_ref(), b"y").operation(hiding)?;
    Ok(())
}
