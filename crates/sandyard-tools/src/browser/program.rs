//! Finds the browser's program.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::process::is_program;
use crate::reply::{Problem, Result};

/// Names of the program on `PATH`, in order of preference.
const NAMES: [&str; 5] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
];

/// Finds the browser's program with these environment variables.
pub(super) fn find(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf> {
    if let Some(named) = variable("SANDYARD_CHROMIUM").filter(|named| !named.is_empty()) {
        let named = PathBuf::from(named);
        if is_program(&named) {
            return Ok(named);
        }
        return Err(Problem::new(format!(
            "SANDYARD_CHROMIUM is {}, which is not a program",
            named.display()
        )));
    }
    let path = variable("PATH").unwrap_or_default();
    let folders: Vec<_> = std::env::split_paths(&path).collect();
    let on_path = NAMES
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    on_path
        .chain(installed_by_playwright(&variable))
        .find(|path| is_program(path))
        .ok_or_else(|| {
            Problem::new(
                "no browser is installed in this sandbox: use a template that has one (templates/agent), or install it with \
                 `apt-get install chromium` and try again",
            )
        })
}

/// Programs that Playwright has installed, newest first: `chromium-1234/chrome-linux/chrome`.
fn installed_by_playwright(variable: &impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let named = variable("PLAYWRIGHT_BROWSERS_PATH").map(PathBuf::from);
    let default = variable("HOME").map(|home| Path::new(&home).join(".cache/ms-playwright"));
    let Some(folder) = named.filter(|path| path.is_absolute()).or(default) else {
        return Vec::new();
    };
    let mut releases: Vec<_> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with("chromium-"))
        })
        .collect();
    releases.sort();
    releases.reverse();
    let programs = releases.iter().flat_map(|release| {
        ["chrome-linux64/chrome", "chrome-linux/chrome"].map(|program| release.join(program))
    });
    programs.collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn program(path: &Path) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    #[test]
    fn the_variable_comes_first_and_a_missing_browser_is_a_problem_with_a_hint() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let with = |pairs: Vec<(&'static str, PathBuf)>| {
            find(move |name| {
                let pair = pairs.iter().find(|(known, _)| *known == name)?;
                Some(pair.1.clone().into_os_string())
            })
        };
        let none = with(vec![("PATH", at("bin")), ("HOME", at("home"))]).unwrap_err();
        assert!(
            none.to_string().contains("apt-get install chromium"),
            "{none}"
        );

        let fetched = at("browsers/chromium-1200/chrome-linux/chrome");
        program(&at("browsers/chromium-1100/chrome-linux/chrome"));
        program(&fetched);
        let found = with(vec![("PLAYWRIGHT_BROWSERS_PATH", at("browsers"))]);
        assert_eq!(found.unwrap(), fetched);

        program(&at("bin/google-chrome"));
        program(&at("bin/chromium"));
        let both = vec![
            ("PATH", at("bin")),
            ("PLAYWRIGHT_BROWSERS_PATH", at("browsers")),
        ];
        assert_eq!(with(both).unwrap(), at("bin/chromium"));

        let named = vec![("PATH", at("bin")), ("SANDYARD_CHROMIUM", fetched.clone())];
        assert_eq!(with(named).unwrap(), fetched);
        std::fs::write(at("text"), "").unwrap();
        let named = vec![("PATH", at("bin")), ("SANDYARD_CHROMIUM", at("text"))];
        assert!(with(named).is_err());
    }
}
