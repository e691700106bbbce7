//! Resolves the volumes of a new sandbox: which ones, and where inside.

use sandyard_store::model::{MountedVolume, VolumeStatus};

use super::volumes::no_volume;
use crate::error::{Result, ServiceError, printable};
use crate::request::MountRequest;
use crate::service::Service;

/// Most volumes of one sandbox.
const MAX_MOUNTS: usize = 16;
const MAX_PATH: usize = 1024;
/// Paths that the sandbox needs itself.
const RESERVED_PATHS: [&str; 4] = ["/proc", "/sys", "/dev", "/etc/sandyard"];

/// The volumes of a new sandbox.
#[derive(Debug, Default)]
pub(super) struct ResolvedMounts {
    pub(super) mounts: Vec<MountedVolume>,
    /// The location of all of them, where the sandbox must be; none without volumes.
    pub(super) location: Option<String>,
}

impl Service {
    /// Finds the volumes of an owner by name or id.
    pub(super) async fn resolve_mounts(
        &self,
        owner: &str,
        requests: &[MountRequest],
    ) -> Result<ResolvedMounts> {
        if requests.len() > MAX_MOUNTS {
            let message = format!("a sandbox has at most {MAX_MOUNTS} volumes");
            return Err(ServiceError::invalid("mounts", message));
        }
        let mut resolved = ResolvedMounts::default();
        for request in requests {
            let path = clean(&request.path)?;
            check_overlap(&path, &resolved.mounts)?;
            let volume = match self.store().volume(&request.volume).await? {
                Some(volume) if volume.owner == owner => Some(volume),
                _ => self.store().volume_named(owner, &request.volume).await?,
            };
            let volume = volume
                .filter(|volume| volume.status == VolumeStatus::Ready)
                .ok_or_else(|| {
                    ServiceError::invalid("mounts", no_volume(&request.volume).message)
                        .hint("GET /volumes lists yours")
                })?;
            if *resolved.location.get_or_insert(volume.location.clone()) != volume.location {
                return Err(ServiceError::invalid(
                    "mounts",
                    "these volumes are at different locations, so no sandbox can have all of them",
                ));
            }
            resolved.mounts.push(MountedVolume {
                volume_id: volume.id,
                name: volume.name,
                path,
            });
        }
        Ok(resolved)
    }
}

/// Normalises a mount path: no repeated slashes, none at the end. Fails if a volume cannot be there.
fn clean(path: &str) -> Result<String> {
    let refuse = |reason: &str| {
        let message = format!(
            "a volume cannot be mounted at `{}`: {reason}",
            printable(path)
        );
        ServiceError::invalid("mounts", message)
    };
    if !path.starts_with('/') {
        return Err(refuse("the path must begin with `/`"));
    }
    if path.len() > MAX_PATH || path.chars().any(char::is_control) {
        return Err(refuse("it is too long or contains control characters"));
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    if parts.is_empty() {
        return Err(refuse("it is the root directory"));
    }
    if parts.iter().any(|part| matches!(*part, "." | "..")) {
        return Err(refuse("it must not contain `.` or `..`"));
    }
    let clean = format!("/{}", parts.join("/"));
    match RESERVED_PATHS
        .iter()
        .find(|reserved| is_within(&clean, reserved) || is_within(reserved, &clean))
    {
        Some(reserved) => Err(refuse(&format!("the sandbox needs `{reserved}` itself"))),
        None => Ok(clean),
    }
}

/// Fails if two volumes have the same path, or one is inside the other.
fn check_overlap(path: &str, mounted: &[MountedVolume]) -> Result<()> {
    let clash =
        |other: &&MountedVolume| is_within(path, &other.path) || is_within(&other.path, path);
    match mounted.iter().find(clash) {
        None => Ok(()),
        Some(other) => Err(ServiceError::invalid(
            "mounts",
            format!(
                "two volumes cannot be mounted at `{}` and `{path}`: one contains the other",
                other.path
            ),
        )
        .hint("mount each at a path of its own")),
    }
}

fn is_within(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normalised_or_refused() {
        assert_eq!(clean("/mnt//a b/").unwrap(), "/mnt/a b");
        assert_eq!(clean("/process").unwrap(), "/process");
        for path in [
            "", "mnt", "/", "//", "/a/../b", "/a/.", "/a\nb", "/proc", "/dev/shm", "/etc",
            "/sys/x/",
        ] {
            let error = clean(path).unwrap_err();
            assert_eq!(error.field, Some("mounts"), "{path}");
        }
        assert!(clean(&format!("/{}", "a".repeat(MAX_PATH))).is_err());
    }

    #[test]
    fn volumes_do_not_overlap() {
        let mounted = [MountedVolume {
            volume_id: "v".to_owned(),
            name: "v".to_owned(),
            path: "/mnt/a".to_owned(),
        }];
        for path in ["/mnt/a", "/mnt/a/b", "/mnt"] {
            assert!(check_overlap(path, &mounted).is_err(), "{path}");
        }
        assert!(check_overlap("/mnt/ab", &mounted).is_ok());
    }
}
