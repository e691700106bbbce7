//! Checks the mount points in a container that does not run.
//!
//! At every start the daemon follows symbolic links in a container's files to find the mount points of volumes. A user who is root
//! in the container could redirect one of their volumes to the agent's program, which then starts with more privileges than they
//! have.

use bollard::query_parameters::ContainerArchiveInfoOptions;
use futures_util::future::try_join_all;
use sandyard_provider::ProviderErrorKind;

use super::body::{AGENT_FOLDER, WORKSPACE_PATH};
use super::convert::Container;
use super::daemon::Shared;
use super::error::{DaemonResult, fault, if_exists};

/// Bit of a file's mode, as the daemon reports it: symbolic link.
const IS_LINK: u32 = 1 << 27;

impl Shared {
    /// Refuses a container in which a component of a mount point's path is a symbolic link.
    pub(super) async fn require_plain_targets(&self, container: &Container) -> DaemonResult {
        let id = &container.instance.id;
        let volume_paths = container.mounts.iter().map(|mount| mount.path.as_str());
        let checks = path_prefixes(volume_paths).into_iter().map(|path_prefix| async move {
            match self.is_link(id, &path_prefix).await? {
                true => Err(fault(
                    ProviderErrorKind::Conflict,
                    format!("`{path_prefix}` is a symbolic link in the path of a volume: remove the link to start the sandbox"),
                )),
                false => Ok(()),
            }
        });
        try_join_all(checks).await.map(drop)
    }

    async fn is_link(&self, id: &str, path: &str) -> DaemonResult<bool> {
        let options = ContainerArchiveInfoOptions {
            path: path.to_owned(),
        };
        let info = self.daemon.get_container_archive_info(id, Some(options));
        let info = if_exists(info.await)?;
        Ok(info.is_some_and(|info| info.file_mode & IS_LINK != 0 || !info.link_target.is_empty()))
    }
}

/// All prefixes of the paths of mount points.
fn path_prefixes<'a>(volume_paths: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut path_prefixes = Vec::new();
    for mount_path in volume_paths.chain([AGENT_FOLDER, WORKSPACE_PATH]) {
        let mut path_prefix = String::new();
        for component in mount_path
            .split('/')
            .filter(|component| !component.is_empty())
        {
            path_prefix.push('/');
            path_prefix.push_str(component);
            path_prefixes.push(path_prefix.clone());
        }
    }
    path_prefixes.sort();
    path_prefixes.dedup();
    path_prefixes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_prefix_of_a_path_is_checked() {
        let all = path_prefixes(["/mnt/a//b/", "/mnt/c"].into_iter());
        let expected = [
            "/.sandyard",
            "/mnt",
            "/mnt/a",
            "/mnt/a/b",
            "/mnt/c",
            "/workspace",
        ];
        assert_eq!(all, expected);
    }
}
