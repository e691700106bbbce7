//! Refuses what makes no sense before the daemon is asked.

use std::path::Path;

use sandyard_core::Limits;
use sandyard_provider::{InstanceSpec, Mount, ProviderError, ProviderErrorKind};

use super::config::DockerConfig;
use super::error::{DaemonResult, invalid};

const MAX_MOUNTS: usize = 32;
const MAX_PATH: usize = 1024;
const MAX_NAME: usize = 255;
const MAX_PROJECT: usize = 128;

/// What is not the user's to cover: the kernel's folders and ours.
const TAKEN: [&str; 4] = ["proc", "sys", "dev", ".sandyard"];

/// Checks everything about a wish that can be checked here.
pub(super) fn spec(spec: &InstanceSpec, most: &Limits) -> DaemonResult {
    for (name, value) in &spec.env {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            let short: String = name.chars().take(80).collect();
            let name = short.escape_debug();
            return Err(invalid(format!(
                "`{name}` cannot be the name of a variable"
            )));
        }
    }
    let in_range = spec.limits.check(most);
    in_range.map_err(|error| invalid(error.to_string()))?;
    mounts(&spec.mounts)
}

/// Refuses mounts that could not work.
fn mounts(mounts: &[Mount]) -> DaemonResult {
    if mounts.len() > MAX_MOUNTS {
        return Err(invalid(format!("more than {MAX_MOUNTS} volumes")));
    }
    let mut seen: Vec<Vec<&str>> = Vec::new();
    for mount in mounts {
        let path = pieces(&mount.path)?;
        let is_nested = |other: &Vec<&str>| other.starts_with(&path) || path.starts_with(other);
        if seen.iter().any(is_nested) {
            return Err(bad_path(
                &mount.path,
                "another volume is there, above or below",
            ));
        }
        seen.push(path);
    }
    Ok(())
}

fn pieces(path: &str) -> DaemonResult<Vec<&str>> {
    if path.len() > MAX_PATH || path.contains('\0') || !path.starts_with('/') {
        return Err(bad_path(
            path,
            "it does not begin with `/`, is too long or has a NUL byte",
        ));
    }
    let pieces: Vec<&str> = path.split('/').filter(|piece| !piece.is_empty()).collect();
    match pieces.first() {
        None => return Err(bad_path(path, "that is the root of all")),
        Some(first) if TAKEN.contains(first) => {
            return Err(bad_path(path, "that is the system's"));
        }
        Some(_) => {}
    }
    let is_odd = |piece: &&str| *piece == "." || *piece == ".." || piece.len() > MAX_NAME;
    if pieces.iter().any(is_odd) {
        return Err(bad_path(
            path,
            "it has `.` or `..` in it, or a name that is too long",
        ));
    }
    Ok(pieces)
}

fn bad_path(path: &str, why: &str) -> super::error::Fault {
    let short: String = path.chars().take(100).collect();
    let message = format!("no volume can be at `{}`: {why}", short.escape_debug());
    let hint = "use absolute paths, each beside the others, such as `/mnt/data`";
    let error = ProviderError::new(ProviderErrorKind::Invalid, message);
    error.hint(Some(hint.to_owned())).into()
}

/// Says whether a text can be the id of a volume.
pub(super) fn is_volume_id(id: &str) -> bool {
    (1..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The folder on the daemon's host that is to be `/workspace`; none: there is no such thing here.
pub(super) fn project_folder(
    config: &DockerConfig,
    project: Option<&str>,
) -> DaemonResult<Option<String>> {
    let (Some(folder), Some(project)) = (&config.projects, project) else {
        return Ok(None);
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let is_one = !project.is_empty() && project.len() <= MAX_PROJECT;
    if !is_one || !project.bytes().all(is_plain) || project.starts_with('.') {
        let message = "a project that is a folder has letters, digits, `.`, `_` and `-` in its name alone, and no `.` first";
        return Err(invalid(message));
    }
    let path = Path::new(folder).join(project);
    let path = path.to_str().map(str::to_owned);
    path.map(Some)
        .ok_or_else(|| invalid("the folder of projects has an odd name"))
}

/// Says whether a text can be a container's id.
pub(super) fn is_container_id(id: &str) -> bool {
    id.len() == 64
        && id
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Says whether a text can be the name of a volume at the daemon's, where it becomes part of a path.
pub(super) fn is_volume_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let first = name.as_bytes().first();
    name.len() <= MAX_NAME
        && name.bytes().all(is_plain)
        && first.is_some_and(u8::is_ascii_alphanumeric)
}

/// Says whether `name` can name a template of ours: it becomes part of an image's name.
pub(super) fn is_template_name(name: &str) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    // Docker wants single dots, at most two underlines and any number of dashes between the plain ones.
    let joins = name.split(|letter: char| is_plain(&(letter as u8)) && letter.is_ascii());
    let is_join =
        |join: &str| matches!(join, "" | "." | "_" | "__") || join.bytes().all(|b| b == b'-');
    (1..=64).contains(&bytes.len())
        && bytes.first().is_some_and(is_plain)
        && bytes.last().is_some_and(is_plain)
        && joins.into_iter().all(is_join)
}

/// Says whether a text can be the name of an image, with or without a registry, a tag and a digest.
pub(super) fn is_image_name(name: &str) -> bool {
    let is_plain = |byte: u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'/' | b':' | b'@')
    };
    (1..=255).contains(&name.len())
        && name.bytes().all(is_plain)
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
    fn names_of_volumes_stay_in_their_place() {
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
