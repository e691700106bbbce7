//! Checks specs and names before any request to the daemon.

use std::path::Path;

use sandyard_core::Limits;
use sandyard_provider::{InstanceSpec, Mount, ProviderError, ProviderErrorKind};

use super::config::DockerConfig;
use super::error::{DaemonResult, invalid};

const MAX_MOUNTS: usize = 32;
const MAX_PATH: usize = 1024;
const MAX_NAME: usize = 255;
const MAX_PROJECT: usize = 128;

/// Folders that no volume may cover: the kernel's and the agent's.
const RESERVED: [&str; 4] = ["proc", "sys", "dev", ".sandyard"];

/// Checks a spec as far as that is possible without the daemon.
pub(super) fn spec(spec: &InstanceSpec, max_limits: &Limits) -> DaemonResult {
    for (name, value) in &spec.env {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            let short: String = name.chars().take(80).collect();
            let name = short.escape_debug();
            return Err(invalid(format!("`{name}` is not a valid variable name")));
        }
    }
    let in_range = spec.limits.check(max_limits);
    in_range.map_err(|error| invalid(error.to_string()))?;
    mounts(&spec.mounts)
}

/// Refuses mounts that cannot work.
fn mounts(mounts: &[Mount]) -> DaemonResult {
    if mounts.len() > MAX_MOUNTS {
        return Err(invalid(format!("more than {MAX_MOUNTS} volumes")));
    }
    let mut paths: Vec<Vec<&str>> = Vec::new();
    for mount in mounts {
        let path = components(&mount.path)?;
        let is_nested = |other: &Vec<&str>| other.starts_with(&path) || path.starts_with(other);
        if paths.iter().any(is_nested) {
            return Err(bad_path(
                &mount.path,
                "it is equal to, above or below the path of another volume",
            ));
        }
        paths.push(path);
    }
    Ok(())
}

fn components(path: &str) -> DaemonResult<Vec<&str>> {
    if path.len() > MAX_PATH || path.contains('\0') || !path.starts_with('/') {
        return Err(bad_path(
            path,
            "it does not start with `/`, is too long or contains a NUL byte",
        ));
    }
    let components: Vec<&str> = path
        .split('/')
        .filter(|component| !component.is_empty())
        .collect();
    match components.first() {
        None => return Err(bad_path(path, "it is the root folder")),
        Some(first) if RESERVED.contains(first) => {
            return Err(bad_path(path, "it belongs to the system"));
        }
        Some(_) => {}
    }
    let is_invalid =
        |component: &&str| *component == "." || *component == ".." || component.len() > MAX_NAME;
    if components.iter().any(is_invalid) {
        return Err(bad_path(
            path,
            "it contains `.`, `..` or a name that is too long",
        ));
    }
    Ok(components)
}

fn bad_path(path: &str, reason: &str) -> super::error::Fault {
    let short: String = path.chars().take(100).collect();
    let message = format!(
        "no volume can be mounted at `{}`: {reason}",
        short.escape_debug()
    );
    let hint = "use absolute paths that do not contain each other, such as `/mnt/data`";
    let error = ProviderError::new(ProviderErrorKind::Invalid, message);
    error.hint(Some(hint.to_owned())).into()
}

/// Whether a text can be the id of a volume.
pub(super) fn is_volume_id(id: &str) -> bool {
    (1..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The folder on the daemon's host that becomes `/workspace`; `None` if projects have no folders.
pub(super) fn project_folder(
    config: &DockerConfig,
    project: Option<&str>,
) -> DaemonResult<Option<String>> {
    let (Some(folder), Some(project)) = (&config.projects, project) else {
        return Ok(None);
    };
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let is_valid_length = !project.is_empty() && project.len() <= MAX_PROJECT;
    if !is_valid_length || !project.bytes().all(is_allowed) || project.starts_with('.') {
        let message = "the name of a project with a folder may only contain letters, digits, `.`, `_` and `-`, and must not start with `.`";
        return Err(invalid(message));
    }
    let path = Path::new(folder).join(project);
    let path = path.to_str().map(str::to_owned);
    path.map(Some)
        .ok_or_else(|| invalid("the path of the projects folder is not valid UTF-8"))
}

/// Whether a text can be the id of a container.
pub(super) fn is_container_id(id: &str) -> bool {
    id.len() == 64
        && id
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a text can be the name of a Docker volume, which becomes part of a path.
pub(super) fn is_volume_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let first = name.as_bytes().first();
    name.len() <= MAX_NAME
        && name.bytes().all(is_allowed)
        && first.is_some_and(u8::is_ascii_alphanumeric)
}

/// Whether a text can be the name of a template, which becomes part of an image's name.
pub(super) fn is_template_name(name: &str) -> bool {
    let is_allowed = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    // Docker allows single dots, at most two underscores and any number of dashes between letters and digits.
    let separators = name.split(|letter: char| is_allowed(&(letter as u8)) && letter.is_ascii());
    let is_separator = |separator: &str| {
        matches!(separator, "" | "." | "_" | "__") || separator.bytes().all(|b| b == b'-')
    };
    (1..=64).contains(&bytes.len())
        && bytes.first().is_some_and(is_allowed)
        && bytes.last().is_some_and(is_allowed)
        && separators.into_iter().all(is_separator)
}

/// Whether a text can be the name of an image, with or without a registry, a tag and a digest.
pub(super) fn is_image_name(name: &str) -> bool {
    let is_allowed = |byte: u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'/' | b':' | b'@')
    };
    (1..=255).contains(&name.len())
        && name.bytes().all(is_allowed)
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && !name.ends_with(['/', ':', '@', '.'])
        && !name.contains("..")
        && !name.contains("//")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_templates() {
        for name in ["a", "node-20.1", "a__b", "a--b", "conformance-1x2"] {
            assert!(is_template_name(name), "{name}");
        }
        for name in [
            "", "..", "a/b", "a\0b", "A", "-a", "a-", "a..b", "a.-b", "ä", "../x",
        ] {
            assert!(!is_template_name(name), "{name:?}");
        }
    }

    #[test]
    fn names_of_images() {
        for name in [
            "debian",
            "python:3.13",
            "r.example:5000/a/b@sha256:00",
            "a/b:c_d",
        ] {
            assert!(is_image_name(name), "{name}");
        }
        for name in [
            "", "a b", "../a", "a?x=1", "a//b", "/a", "a:", "a#b", "a%2f", "a/../b",
        ] {
            assert!(!is_image_name(name), "{name:?}");
        }
    }

    #[test]
    fn names_of_volumes() {
        assert!(is_volume_name("sandyard-ws-one_1.2"));
        for name in ["", "..", ".a", "a/../b", "a?b", "a#b", "a%2f", "a b"] {
            assert!(!is_volume_name(name), "{name:?}");
        }
    }

    #[test]
    fn ids_of_containers() {
        assert!(is_container_id(&"0f".repeat(32)));
        for id in ["", "..", "0f", &"0F".repeat(32), &"a".repeat(5000)] {
            assert!(!is_container_id(id), "{id}");
        }
    }
}
