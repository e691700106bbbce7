//! The directory in which everything starts, if a sandbox has one of its own.

use std::path::{Path, PathBuf};

use crate::filesystem::make_all;
use crate::settings::Settings;
use crate::user::Account;

/// Environment variable with the one directory that replaces all defaults.
const VARIABLE: &str = "SANDYARD_WORKDIR";

/// The directory that replaces all defaults, if the sandbox has one. It is created for the user when it is missing.
pub(crate) fn common(settings: &Settings, account: &Account) -> Option<PathBuf> {
    let path = Path::new(settings.env.get(VARIABLE)?);
    if !path.is_absolute() {
        return None;
    }
    // If that fails, commands start where they start without the variable.
    let _ = make_all(path, account);
    path.is_dir().then(|| path.to_owned())
}
