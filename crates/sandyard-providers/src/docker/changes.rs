//! Files that users changed in a container.

use bollard::models::{ChangeType, FilesystemChange};
use sandyard_provider::{Change, ChangeKind, Mount, ProviderErrorKind};

use super::body::{AGENT_FOLDER, WORKSPACE_PATH};
use super::daemon::Shared;
use super::error::{DaemonResult, fault};

/// Maximum size of the daemon's answer about one container.
const MAX_ANSWER: usize = 64 << 20;

impl Shared {
    /// The files that users changed in a container. Their number is up to the user.
    pub(super) async fn changes(&self, id: &str) -> DaemonResult<Vec<Change>> {
        let container = self.get(id).await?;
        let version = self.daemon.client_version();
        let path = format!("/v{version}/containers/{id}/changes");
        let reported = self.connection.read(&path, MAX_ANSWER).await?;
        let work = tokio::task::spawn_blocking(move || {
            let reported: Option<Vec<FilesystemChange>> = serde_json::from_slice(&reported)?;
            let reported = reported.unwrap_or_default();
            Ok::<_, serde_json::Error>(changes(reported, &container.mounts))
        });
        let invalid = |problem: String| {
            let message = format!("Docker's answer about changes is invalid: {problem}");
            fault(ProviderErrorKind::Failed, message)
        };
        let done = work.await.map_err(|error| invalid(error.to_string()))?;
        done.map_err(|error| invalid(error.to_string()))
    }
}

/// The changes since the image, without those that this server made.
fn changes(reported: Vec<FilesystemChange>, mounts: &[Mount]) -> Vec<Change> {
    let mut all: Vec<Change> = reported.into_iter().filter_map(change).collect();
    all.retain(|change| !is_own(change, mounts));
    // Sorted by path components, so that a folder is followed by its content.
    all.sort_by(|a, b| a.path.split('/').cmp(b.path.split('/')));
    // The daemon reports a folder as modified when something below it changed.
    let mut changes = Vec::with_capacity(all.len());
    let mut rest = all.into_iter().peekable();
    while let Some(change) = rest.next() {
        let is_above = rest
            .peek()
            .is_some_and(|next| is_below(&next.path, &change.path));
        if change.kind != ChangeKind::Modified || !is_above {
            changes.push(change);
        }
    }
    changes
}

fn is_below(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder);
    rest.is_some_and(|rest| rest.starts_with('/') || (folder.ends_with('/') && !rest.is_empty()))
}

fn change(reported: FilesystemChange) -> Option<Change> {
    let kind = match reported.kind {
        ChangeType::_0 => ChangeKind::Modified,
        ChangeType::_1 => ChangeKind::Added,
        ChangeType::_2 => ChangeKind::Deleted,
    };
    Some(Change {
        path: reported.path,
        kind,
    })
}

/// Whether a change is the agent's own: its user's account, its folders, mount points of volumes.
fn is_own(change: &Change, mounts: &[Mount]) -> bool {
    let path = change.path.as_str();
    let is_mount_point =
        |mount_path: &str| mount_path == path || mount_path.starts_with(&format!("{path}/"));
    let mount_paths = mounts.iter().map(|mount| mount.path.trim_end_matches('/'));
    match change.kind {
        ChangeKind::Modified => {
            OWN_CHANGES.contains(&path) || mount_paths.into_iter().any(is_mount_point)
        }
        ChangeKind::Added => {
            OWN_FILES.contains(&path)
                || [AGENT_FOLDER, WORKSPACE_PATH].contains(&path)
                || path.starts_with("/run/sandyard")
                || mount_paths.into_iter().any(is_mount_point)
        }
        ChangeKind::Deleted => false,
    }
}

/// Files that contain the account of the user that runs commands.
const OWN_CHANGES: [&str; 9] = [
    "/",
    "/etc",
    "/etc/passwd",
    "/etc/group",
    "/etc/shadow",
    "/etc/gshadow",
    "/home",
    "/run",
    "/root",
];
/// Files that are created for that user.
const OWN_FILES: [&str; 7] = [
    "/home",
    "/home/user",
    "/home/user/.bashrc",
    "/home/user/.bash_logout",
    "/home/user/.profile",
    "/run",
    "/tmp",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: ChangeType, path: &str) -> FilesystemChange {
        FilesystemChange {
            path: path.to_owned(),
            kind,
        }
    }

    #[test]
    fn only_changes_of_users_are_listed() {
        let mounts = [Mount {
            volume: "v".to_owned(),
            path: "/mnt/data".to_owned(),
        }];
        let none = vec![
            entry(ChangeType::_0, "/etc"),
            entry(ChangeType::_0, "/etc/passwd"),
            entry(ChangeType::_1, "/.sandyard"),
            entry(ChangeType::_1, "/workspace"),
            entry(ChangeType::_0, "/mnt"),
            entry(ChangeType::_1, "/mnt/data"),
            entry(ChangeType::_1, "/home/user"),
        ];
        assert_eq!(changes(none, &mounts), []);
        let some = vec![
            entry(ChangeType::_0, "/usr"),
            entry(ChangeType::_0, "/usr/bin"),
            // Between the two when sorted by characters.
            entry(ChangeType::_1, "/usr/bin-old"),
            entry(ChangeType::_2, "/usr/bin/x"),
            entry(ChangeType::_1, "/home/user"),
            entry(ChangeType::_1, "/home/user/file"),
        ];
        let found: Vec<_> = changes(some, &[])
            .into_iter()
            .map(|change| (change.path, change.kind))
            .collect();
        assert_eq!(
            found,
            [
                ("/home/user/file".to_owned(), ChangeKind::Added),
                ("/usr/bin/x".to_owned(), ChangeKind::Deleted),
                ("/usr/bin-old".to_owned(), ChangeKind::Added),
            ]
        );
    }
}
