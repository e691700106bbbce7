//! Names of images: which belong to templates, and whether an image has a name.
//!
//! | name | image |
//! |---|---|
//! | `sandyard/<template>:latest` | a template, addressed by `<template>` only: the service knows its owner |
//! | `sandyard-empty:latest` | the empty image |
//! | any other | an image that the operator of the daemon provided, or that is pulled |

use bollard::models::ImageInspect;

/// The empty image, for containers that are never started.
pub(super) const EMPTY: &str = "sandyard-empty:latest";

/// Prefix of the image names of templates.
const TEMPLATE_PREFIX: &str = "sandyard/";

/// The image name of a template.
pub(super) fn own_name(template: &str) -> String {
    format!("{TEMPLATE_PREFIX}{template}:latest")
}

/// The template of an image name.
pub(super) fn template_of(tag: &str) -> Option<&str> {
    tag.strip_prefix(TEMPLATE_PREFIX)?.strip_suffix(":latest")
}

/// The full name of an image, so that names can be compared.
pub(super) fn full_name(name: &str) -> String {
    let hub = ["docker.io/", "index.docker.io/"];
    let name = hub
        .iter()
        .find_map(|hub| name.strip_prefix(hub))
        .unwrap_or(name);
    let official = name.strip_prefix("library/");
    let name = official.filter(|rest| !rest.contains('/')).unwrap_or(name);
    let last = name.rsplit('/').next().unwrap_or(name);
    match last.contains([':', '@']) {
        true => name.to_owned(),
        false => format!("{name}:latest"),
    }
}

/// Whether a full name is reserved: nothing is pulled by it, so that no pull replaces a template.
pub(super) fn is_reserved(full_name: &str) -> bool {
    let empty = EMPTY.trim_end_matches("latest").trim_end_matches(':');
    let rest = full_name.strip_prefix(empty);
    full_name.starts_with(TEMPLATE_PREFIX) || rest.is_some_and(|rest| rest.starts_with([':', '@']))
}

/// Whether an image has a name. The daemon also finds images by their ids and prefixes of those, which are not names.
pub(super) fn has_name(image: &ImageInspect, name: &str) -> bool {
    let name = full_name(name);
    let (names, name) = match name.split_once('@') {
        // A tag has no meaning beside a digest.
        Some((name, digest)) => (
            &image.repo_digests,
            format!("{}@{digest}", without_tag(name)),
        ),
        None => (&image.repo_tags, name),
    };
    names
        .iter()
        .flatten()
        .any(|candidate| full_name(candidate) == name)
}

fn without_tag(name: &str) -> &str {
    match name.rsplit_once(':') {
        Some((before, tag)) if !tag.contains('/') => before,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_completed() {
        for (name, full) in [
            ("debian", "debian:latest"),
            ("docker.io/library/debian:12", "debian:12"),
            ("index.docker.io/library/debian", "debian:latest"),
            ("library/a/b", "library/a/b:latest"),
            ("r.example:5000/a", "r.example:5000/a:latest"),
            ("a@sha256:00", "a@sha256:00"),
        ] {
            assert_eq!(full_name(name), full);
        }
    }

    #[test]
    fn names_of_templates_are_reserved() {
        for name in [
            "sandyard/kept",
            "sandyard/kept:latest",
            "sandyard/kept:other",
            "docker.io/sandyard/kept",
            "index.docker.io/sandyard/kept@sha256:00",
            "sandyard-empty",
            "sandyard-empty@sha256:00",
        ] {
            assert!(is_reserved(&full_name(name)), "{name}");
        }
        for name in ["sandyard", "sandyard-empty-not", "r.example/sandyard/kept"] {
            assert!(!is_reserved(&full_name(name)), "{name}");
        }
    }

    #[test]
    fn ids_are_not_names() {
        let image = ImageInspect {
            id: Some("sha256:b0f292".to_owned()),
            repo_tags: Some(vec![
                "debian:12".to_owned(),
                "r.example:5000/a:1".to_owned(),
            ]),
            repo_digests: Some(vec!["r.example:5000/a@sha256:00".to_owned()]),
            ..ImageInspect::default()
        };
        for name in [
            "debian:12",
            "docker.io/library/debian:12",
            "r.example:5000/a:1",
            "r.example:5000/a@sha256:00",
            "r.example:5000/a:9@sha256:00",
        ] {
            assert!(has_name(&image, name), "{name}");
        }
        for name in [
            "b0f292",
            "b0",
            "sha256:b0f292",
            "debian",
            "a@sha256:00",
            "a@sha256:b0f292",
        ] {
            assert!(!has_name(&image, name), "{name}");
        }
    }
}
