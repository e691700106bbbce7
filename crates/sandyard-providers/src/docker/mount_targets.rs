//! The places of mounts in a container that does not run.
//!
//! At every start the daemon follows the links that are in a container's files to find where its volumes go. Whoever is root inside
//! could so lead a volume of their own to where the agent's program is, which is then started with more rights than they have.

use bollard::query_parameters::ContainerArchiveInfoOptions;
use futures_util::future::try_join_all;
use sandyard_provider::ProviderErrorKind;

use super::body::{AGENT_FOLDER, WORKSPACE_PATH};
use super::convert::Container;
use super::daemon::Shared;
use super::error::{DaemonResult, if_there, known};

/// In the mode of a file, as the daemon tells it: it is a link.
const IS_LINK: u32 = 1 << 27;

impl Shared {
    /// Refuses a container in which something on the way to a mount is a link.
    pub(super) async fn need_plain_targets(&self, container: &Container) -> DaemonResult {
        let id = &container.instance.id;
        let users = container.mounts.iter().map(|mount| mount.path.as_str());
        let looks = places(users).into_iter().map(|place| async move {
            match self.is_link(id, &place).await? {
                true => Err(known(
                    ProviderErrorKind::Conflict,
                    format!("`{place}` is a link, and a volume belongs there: it is not started"),
                )),
                false => Ok(()),
            }
        });
        try_join_all(looks).await.map(drop)
    }

    async fn is_link(&self, id: &str, path: &str) -> DaemonResult<bool> {
        let options = ContainerArchiveInfoOptions {
            path: path.to_owned(),
        };
        let told = self.daemon.get_container_archive_info(id, Some(options));
        let told = if_there(told.await)?;
        Ok(told.is_some_and(|told| told.file_mode & IS_LINK != 0 || !told.link_target.is_empty()))
    }
}

/// All that the ways to mounts lead through.
fn places<'a>(users: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut places = Vec::new();
    for target in users.chain([AGENT_FOLDER, WORKSPACE_PATH]) {
        let mut place = String::new();
        for piece in target.split('/').filter(|piece| !piece.is_empty()) {
            place.push('/');
            place.push_str(piece);
            places.push(place.clone());
        }
    }
    places.sort();
    places.dedup();
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_of_the_way_is_looked_at() {
        let all = places(["/mnt/a//b/", "/mnt/c"].into_iter());
        let wanted = [
            "/.sandyard",
            "/mnt",
            "/mnt/a",
            "/mnt/a/b",
            "/mnt/c",
            "/workspace",
        ];
        assert_eq!(all, wanted);
    }
}
