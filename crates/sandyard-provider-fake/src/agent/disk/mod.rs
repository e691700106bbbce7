//! The file system of an instance: its own tree, and mounted volumes.

pub(super) mod path;
pub(super) mod tree;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use sandyard_wire::{ConnectError, EventType};
use tokio::sync::broadcast;

use path::{missing, no_folder, parent};
use sandyard_provider::{Change, ChangeKind};
use tree::{Kind, Node, Stamp, Tree};

use crate::agent::Result;

/// How many changes a slow watcher may lag behind.
const MAX_CHANGES: usize = 4096;

/// A tree that several instances may mount.
pub(crate) type SharedTree = Arc<Mutex<Tree>>;

/// The files of one instance.
#[derive(Debug)]
pub(super) struct Disk {
    root: SharedTree,
    /// The root as it was when the instance was created.
    template: Tree,
    /// Volumes by their mount paths.
    mounts: Vec<(String, SharedTree)>,
    changes: broadcast::Sender<(String, EventType)>,
}

impl Disk {
    pub(super) fn new(mut root: Tree, template: Tree, mounts: Vec<(String, SharedTree)>) -> Self {
        let stamp = Stamp {
            owner: "root".to_owned(),
            now_ms: 0,
        };
        for (path, _) in &mounts {
            // When the disk is too full for the folder, the volume is mounted nevertheless.
            let _ = root.make_all(path, &stamp);
        }
        Self {
            root: Arc::new(Mutex::new(root)),
            template,
            mounts,
            changes: broadcast::Sender::new(MAX_CHANGES),
        }
    }

    /// The changes from now on.
    pub(super) fn changes(&self) -> broadcast::Receiver<(String, EventType)> {
        self.changes.subscribe()
    }

    /// The files as they are now, and those of the template.
    pub(super) fn trees(&self) -> (Tree, Tree) {
        (self.root.lock().clone(), self.template.clone())
    }

    pub(super) fn used(&self) -> u64 {
        self.root.lock().used()
    }

    /// The tree that holds a path, the mount path of that tree, and the path in it.
    fn locate<'a>(&'a self, path: &'a str) -> (&'a SharedTree, &'a str, &'a str) {
        for (at, tree) in &self.mounts {
            match path.strip_prefix(at.as_str()) {
                Some("") => return (tree, at, "/"),
                Some(rest) if rest.starts_with('/') => return (tree, at, rest),
                _ => {}
            }
        }
        (&self.root, "", path)
    }

    pub(super) fn get(&self, path: &str) -> Result<Node> {
        let (tree, _, inner) = self.locate(path);
        tree.lock().get(inner).cloned().map_err(|_| missing(path))
    }

    pub(super) fn is_folder(&self, path: &str) -> bool {
        self.get(path).is_ok_and(|node| node.is_folder())
    }

    pub(super) fn read(&self, path: &str) -> Result<Bytes> {
        let (tree, _, inner) = self.locate(path);
        let tree = tree.lock();
        tree.get(inner).map_err(|_| missing(path))?;
        tree.read(inner)
    }

    pub(super) fn write(
        &self,
        path: &str,
        content: Bytes,
        stamp: &Stamp,
        metadata: BTreeMap<String, String>,
    ) -> Result<()> {
        let (tree, _, inner) = self.locate(path);
        let is_new = tree.lock().write(inner, content, stamp, metadata)?;
        if is_new {
            self.notify(path, EventType::Create);
        }
        self.notify(path, EventType::Write);
        Ok(())
    }

    pub(super) fn append(&self, path: &str, more: &[u8], stamp: &Stamp) -> Result<()> {
        let before = self.read(path).unwrap_or_default();
        let content = [&before[..], more].concat();
        self.write(path, content.into(), stamp, BTreeMap::new())
    }

    pub(super) fn make_all(&self, path: &str, stamp: &Stamp) -> Result<()> {
        let (tree, outer, inner) = self.locate(path);
        let created = tree.lock().make_all(inner, stamp)?;
        for inner in created {
            self.notify(&format!("{outer}{inner}"), EventType::Create);
        }
        Ok(())
    }

    pub(super) fn remove(&self, path: &str) -> Result<bool> {
        if path == "/" || self.mounts.iter().any(|(at, _)| at == path) {
            let message = format!("'{path}' cannot be removed");
            return Err(ConnectError::invalid_argument(message));
        }
        let (tree, _, inner) = self.locate(path);
        let was_there = tree.lock().remove(inner);
        if was_there {
            self.notify(path, EventType::Remove);
        }
        Ok(was_there)
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> Result<()> {
        let (_, from_outer, from_inner) = self.locate(from);
        let (tree, to_outer, to_inner) = self.locate(to);
        if from_outer != to_outer {
            return Err(ConnectError::invalid_argument(format!(
                "'{from}' and '{to}' are on different file systems"
            )));
        }
        tree.lock().get(from_inner).map_err(|_| missing(from))?;
        tree.lock().rename(from_inner, to_inner)?;
        self.notify(from, EventType::Rename);
        self.notify(to, EventType::Create);
        Ok(())
    }

    /// The entries of a folder down to a depth, each folder before its content.
    pub(super) fn list(&self, path: &str, depth: u32) -> Result<Vec<(String, Node)>> {
        let found = self.get(path)?;
        if !found.is_folder() {
            return Err(no_folder(path));
        }
        let (tree, outer, inner) = self.locate(path);
        let tree = tree.lock();
        let base = if inner == "/" {
            0
        } else {
            inner.matches('/').count()
        };
        let is_near = |inner: &str| inner.matches('/').count() - base <= depth as usize;
        let below = tree.below(inner).filter(|(inner, _)| is_near(inner));
        let mut entries: Vec<_> = below
            .map(|(inner, node)| (format!("{outer}{inner}"), node.clone()))
            .collect();
        entries.sort_by(|(a, _), (b, _)| a.split('/').cmp(b.split('/')));
        Ok(entries)
    }

    /// The differences to the template.
    pub(super) fn difference(&self) -> Vec<Change> {
        let now = self.root.lock();
        let is_mount = |path: &str| self.mounts.iter().any(|(at, _)| at == path);
        let kind = |node: &Node| node.kind.clone();
        let change = |path: &String, kind| Change {
            path: path.clone(),
            kind,
        };
        let mut changes = Vec::new();
        for (path, node) in now.all().filter(|(path, _)| !is_mount(path)) {
            match self.template.get(path).map(kind) {
                Err(_) => changes.push(change(path, ChangeKind::Added)),
                Ok(before) if before != node.kind => {
                    changes.push(change(path, ChangeKind::Modified))
                }
                Ok(_) => {}
            }
        }
        let deleted = self
            .template
            .all()
            .filter(|(path, _)| now.get(path).is_err());
        changes.extend(deleted.map(|(path, _)| change(path, ChangeKind::Deleted)));
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        changes
    }

    fn notify(&self, path: &str, what: EventType) {
        // An error means that there are no watchers.
        let _ = self.changes.send((path.to_owned(), what));
    }
}

/// The file tree of the default template.
pub(crate) fn base() -> Tree {
    let mut tree = Tree::new(u64::MAX / 2);
    let stamp = |owner: &str| Stamp {
        owner: owner.to_owned(),
        now_ms: 0,
    };
    for (path, owner) in [
        ("/bin", "root"),
        ("/etc", "root"),
        ("/home/user", "user"),
        ("/root", "root"),
        ("/tmp", "root"),
        ("/usr/bin", "root"),
        ("/var/log", "root"),
        ("/workspace", "user"),
    ] {
        // Cannot fail: the tree is empty and has space.
        let _ = tree.make_all(path, &stamp(owner));
    }
    let accounts = "root:x:0:0:root:/root:/bin/bash\nuser:x:1000:1000::/home/user:/bin/bash\n";
    let content = Bytes::from_static(accounts.as_bytes());
    let _ = tree.write("/etc/passwd", content, &stamp("root"), BTreeMap::new());
    tree
}

/// Whether a folder contains a path: directly, or `anywhere` below it.
pub(super) fn is_in(folder: &str, path: &str, anywhere: bool) -> bool {
    match anywhere {
        true => {
            folder == "/"
                || path
                    .strip_prefix(folder)
                    .is_some_and(|rest| rest.starts_with('/'))
        }
        false => parent(path) == folder && path != folder,
    }
}

/// The content's length; a folder's is that of a block.
pub(super) fn size(node: &Node) -> i64 {
    match &node.kind {
        Kind::Folder => 4096,
        Kind::File(content) => i64::try_from(content.len()).unwrap_or(i64::MAX),
    }
}
