//! Names of images: which are ours, and whether an image is called so.
//!
//! | name | is |
//! |---|---|
//! | `sandyard/<template>:latest` | a template of ours, reached by `<template>` and by nothing else: the service knows whose it is |
//! | `sandyard-empty:latest` | the image with nothing in it |
//! | any other | whoever manages the daemon has put it there, or it is fetched |

use bollard::models::ImageInspect;

/// An image with nothing in it, for containers that are never started.
pub(super) const EMPTY: &str = "sandyard-empty:latest";

/// What the names of our own images begin with.
const OWN: &str = "sandyard/";

/// The name of the image that is a template of ours.
pub(super) fn own_name(template: &str) -> String {
    format!("{OWN}{template}:latest")
}

/// The template of ours that an image of that name is.
pub(super) fn template_of(tag: &str) -> Option<&str> {
    tag.strip_prefix(OWN)?.strip_suffix(":latest")
}

/// The name of an image in full, so that names can be compared.
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

/// Says whether a name in full is one that only we give: nothing is fetched by it, lest it takes the place of ours.
pub(super) fn is_reserved(full_name: &str) -> bool {
    let empty = EMPTY.trim_end_matches("latest").trim_end_matches(':');
    let rest = full_name.strip_prefix(empty);
    full_name.starts_with(OWN) || rest.is_some_and(|rest| rest.starts_with([':', '@']))
}

/// Says whether an image is called so. The daemon also finds it by its id, and by the beginning of that: those are no names.
pub(super) fn is_called(image: &ImageInspect, name: &str) -> bool {
    let name = full_name(name);
    let (names, name) = match name.split_once('@') {
        // A tag says nothing beside a digest.
        Some((name, digest)) => (
            &image.repo_digests,
            format!("{}@{digest}", without_tag(name)),
        ),
        None => (&image.repo_tags, name),
    };
    names.iter().flatten().any(|one| full_name(one) == name)
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
    fn our_own_names_are_nobody_elses() {
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
    fn ids_are_no_names() {
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
            assert!(is_called(&image, name), "{name}");
        }
        for name in [
            "b0f292",
            "b0",
            "sha256:b0f292",
            "debian",
            "a@sha256:00",
            "a@sha256:b0f292",
        ] {
            assert!(!is_called(&image, name), "{name}");
        }
    }
}
