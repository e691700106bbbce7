//! Volumes a sandbox is to have: which, and where inside.

use sandyard_store::model::{MountedVolume, VolumeStatus};

use super::volumes::no_volume;
use crate::error::{ServiceError, ServiceResult};
use crate::request::MountRequest;
use crate::service::Service;

/// Most volumes of one sandbox.
const MOST: usize = 16;
const MAX_PATH: usize = 1024;
/// What the sandbox itself needs there.
const TAKEN: [&str; 4] = ["/proc", "/sys", "/dev", "/etc/sandyard"];

/// Volumes that were found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) mounts: Vec<MountedVolume>,
    /// Where they all are, and the sandbox must be; none without volumes.
    pub(super) location: Option<String>,
}

impl Service {
    /// Finds the volumes an owner's sandbox is to have, by name or id.
    pub(super) async fn find_mounts(
        &self,
        owner: &str,
        requests: &[MountRequest],
    ) -> ServiceResult<Found> {
        if requests.len() > MOST {
            let message = format!("a sandbox has at most {MOST} volumes");
            return Err(ServiceError::invalid("mounts", message));
        }
        let mut found = Found::default();
        for request in requests {
            let path = clean(&request.path)?;
            check_apart(&path, &found.mounts)?;
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
            if *found.location.get_or_insert(volume.location.clone()) != volume.location {
                return Err(ServiceError::invalid(
                    "mounts",
                    "these volumes are on different nodes, so no sandbox can have all of them",
                ));
            }
            found.mounts.push(MountedVolume {
                volume_id: volume.id,
                name: volume.name,
                path,
            });
        }
        Ok(found)
    }
}

/// A path without doubled slashes and slashes at its end, if a volume can be there.
fn clean(path: &str) -> ServiceResult<String> {
    let refuse = |why: &str| {
        let shown: String = path.chars().filter(|c| !c.is_control()).take(64).collect();
        ServiceError::invalid("mounts", format!("a volume cannot be at `{shown}`: {why}"))
    };
    if !path.starts_with('/') {
        return Err(refuse("the path must begin with `/`"));
    }
    if path.len() > MAX_PATH || path.chars().any(char::is_control) {
        return Err(refuse("it is too long or holds control characters"));
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    if parts.is_empty() {
        return Err(refuse("that is where everything else is"));
    }
    if parts.iter().any(|part| matches!(*part, "." | "..")) {
        return Err(refuse("write it without `.` and `..`"));
    }
    let clean = format!("/{}", parts.join("/"));
    match TAKEN
        .iter()
        .find(|taken| is_within(&clean, taken) || is_within(taken, &clean))
    {
        Some(taken) => Err(refuse(&format!("the sandbox needs `{taken}` itself"))),
        None => Ok(clean),
    }
}

/// Refuses two volumes at one place, and one inside another.
fn check_apart(path: &str, others: &[MountedVolume]) -> ServiceResult<()> {
    let clash =
        |other: &&MountedVolume| is_within(path, &other.path) || is_within(&other.path, path);
    match others.iter().find(clash) {
        None => Ok(()),
        Some(other) => Err(ServiceError::invalid(
            "mounts",
            format!("two volumes cannot be at `{}` and `{path}`", other.path),
        )
        .hint("give each a folder of its own")),
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
    fn paths_are_cleaned_or_refused() {
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
    fn volumes_are_apart() {
        let others = [MountedVolume {
            volume_id: "v".to_owned(),
            name: "v".to_owned(),
            path: "/mnt/a".to_owned(),
        }];
        for path in ["/mnt/a", "/mnt/a/b", "/mnt"] {
            assert!(check_apart(path, &others).is_err(), "{path}");
        }
        assert!(check_apart("/mnt/ab", &others).is_ok());
    }
}
