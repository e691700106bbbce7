//! What users changed in a container.

use bollard::models::{ChangeType, FilesystemChange};
use sandyard_provider::{Change, ChangeKind, Mount, ProviderErrorKind};

use super::body::{AGENT_FOLDER, WORKSPACE_PATH};
use super::daemon::Shared;
use super::error::{DaemonResult, known};

/// The most that is read of what the daemon has to say of one container.
const MOST: usize = 64 << 20;

impl Shared {
    /// What users changed in a container. There may be a great many of them: whoever is inside decides.
    pub(super) async fn changes(&self, id: &str) -> DaemonResult<Vec<Change>> {
        let container = self.get(id).await?;
        let version = self.daemon.client_version();
        let path = format!("/v{version}/containers/{id}/changes");
        let told = self.line.read(&path, MOST).await?;
        let work = tokio::task::spawn_blocking(move || {
            let told: Option<Vec<FilesystemChange>> = serde_json::from_slice(&told)?;
            let told = told.unwrap_or_default();
            Ok::<_, serde_json::Error>(changes(told, &container.mounts))
        });
        let odd = |why: String| {
            let message = format!("what Docker says of changes makes no sense: {why}");
            known(ProviderErrorKind::Failed, message)
        };
        let done = work.await.map_err(|error| odd(error.to_string()))?;
        done.map_err(|error| odd(error.to_string()))
    }
}

/// What changed since the image, without what we changed ourselves.
fn changes(told: Vec<FilesystemChange>, mounts: &[Mount]) -> Vec<Change> {
    let mut all: Vec<Change> = told.into_iter().filter_map(change).collect();
    all.retain(|change| !is_own(change, mounts));
    // Name by name, so that what is in a folder comes right after it.
    all.sort_by(|a, b| a.path.split('/').cmp(b.path.split('/')));
    // A folder is told to be modified when something below it was.
    let mut kept = Vec::with_capacity(all.len());
    let mut rest = all.into_iter().peekable();
    while let Some(change) = rest.next() {
        let is_above = rest
            .peek()
            .is_some_and(|next| is_below(&next.path, &change.path));
        if change.kind != ChangeKind::Modified || !is_above {
            kept.push(change);
        }
    }
    kept
}

fn is_below(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder);
    rest.is_some_and(|rest| rest.starts_with('/') || (folder.ends_with('/') && !rest.is_empty()))
}

fn change(told: FilesystemChange) -> Option<Change> {
    let kind = match told.kind {
        ChangeType::_0 => ChangeKind::Modified,
        ChangeType::_1 => ChangeKind::Added,
        ChangeType::_2 => ChangeKind::Deleted,
    };
    Some(Change {
        path: told.path,
        kind,
    })
}

/// Says whether a change is the agent's own: the account of its user, its folders, the places of volumes.
fn is_own(change: &Change, mounts: &[Mount]) -> bool {
    let path = change.path.as_str();
    let is_place = |place: &str| place == path || place.starts_with(&format!("{path}/"));
    let places = mounts.iter().map(|mount| mount.path.trim_end_matches('/'));
    match change.kind {
        ChangeKind::Modified => OWN_CHANGES.contains(&path) || places.into_iter().any(is_place),
        ChangeKind::Added => {
            OWN_FILES.contains(&path)
                || [AGENT_FOLDER, WORKSPACE_PATH].contains(&path)
                || path.starts_with("/run/sandyard")
                || places.into_iter().any(is_place)
        }
        ChangeKind::Deleted => false,
    }
}

/// Files that get the account of the user that commands run as.
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
/// What is there for it, the files of a new home among it.
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

    fn told(kind: ChangeType, path: &str) -> FilesystemChange {
        FilesystemChange {
            path: path.to_owned(),
            kind,
        }
    }

    #[test]
    fn only_what_users_changed_is_told() {
        let mounts = [Mount {
            volume: "v".to_owned(),
            path: "/mnt/data".to_owned(),
        }];
        let none = vec![
            told(ChangeType::_0, "/etc"),
            told(ChangeType::_0, "/etc/passwd"),
            told(ChangeType::_1, "/.sandyard"),
            told(ChangeType::_1, "/workspace"),
            told(ChangeType::_0, "/mnt"),
            told(ChangeType::_1, "/mnt/data"),
            told(ChangeType::_1, "/home/user"),
        ];
        assert_eq!(changes(none, &mounts), []);
        let some = vec![
            told(ChangeType::_0, "/usr"),
            told(ChangeType::_0, "/usr/bin"),
            // Between the two in any order by letters.
            told(ChangeType::_1, "/usr/bin-old"),
            told(ChangeType::_2, "/usr/bin/x"),
            told(ChangeType::_1, "/home/user"),
            told(ChangeType::_1, "/home/user/file"),
        ];
        let told: Vec<_> = changes(some, &[])
            .into_iter()
            .map(|one| (one.path, one.kind))
            .collect();
        assert_eq!(
            told,
            [
                ("/home/user/file".to_owned(), ChangeKind::Added),
                ("/usr/bin/x".to_owned(), ChangeKind::Deleted),
                ("/usr/bin-old".to_owned(), ChangeKind::Added),
            ]
        );
    }
}
