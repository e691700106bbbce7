//! Files in memory, by path.

use std::collections::BTreeMap;

use bytes::Bytes;
use sandyard_wire::{Code, ConnectError};

use super::path::{is_folder, missing, no_folder, parent};
use crate::agent::Result;

/// Maximum number of files and folders in one tree.
const MAX_NODES: usize = 100_000;

/// Bytes that a file occupies besides its content.
const NODE_BYTES: u64 = 512;

/// A file with its content, or a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Folder,
    File(Bytes),
}

/// A file or a folder.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) owner: String,
    pub(crate) modified_ms: i64,
    pub(crate) metadata: BTreeMap<String, String>,
}

impl Node {
    fn bytes(&self) -> u64 {
        match &self.kind {
            Kind::Folder => NODE_BYTES,
            Kind::File(content) => NODE_BYTES + content.len() as u64,
        }
    }

    pub(crate) fn is_folder(&self) -> bool {
        self.kind == Kind::Folder
    }
}

/// The user who writes, and the time.
#[derive(Clone, Debug)]
pub(crate) struct Stamp {
    pub(crate) owner: String,
    pub(crate) now_ms: i64,
}

/// Files and folders by their paths, which are absolute and clean. Copies share contents.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    nodes: BTreeMap<String, Node>,
    used: u64,
    capacity: u64,
}

impl Tree {
    /// An empty root with this capacity in bytes.
    pub(crate) fn new(capacity: u64) -> Self {
        let mut tree = Self {
            nodes: BTreeMap::new(),
            used: 0,
            capacity,
        };
        let stamp = Stamp {
            owner: "root".to_owned(),
            now_ms: 0,
        };
        tree.insert("/", Kind::Folder, &stamp, BTreeMap::new());
        tree
    }

    pub(crate) fn with_capacity(mut self, capacity: u64) -> Self {
        self.capacity = self.used.saturating_add(capacity);
        self
    }

    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    pub(crate) fn get(&self, path: &str) -> Result<&Node> {
        self.nodes.get(path).ok_or_else(|| missing(path))
    }

    /// A file's content.
    pub(crate) fn read(&self, path: &str) -> Result<Bytes> {
        match &self.get(path)?.kind {
            Kind::File(content) => Ok(content.clone()),
            Kind::Folder => Err(is_folder(path)),
        }
    }

    /// Writes a file into an existing folder; returns whether the file is new.
    pub(crate) fn write(
        &mut self,
        path: &str,
        content: Bytes,
        stamp: &Stamp,
        metadata: BTreeMap<String, String>,
    ) -> Result<bool> {
        let before = match self.nodes.get(path) {
            Some(node) if node.is_folder() => return Err(is_folder(path)),
            Some(node) => Some(node.bytes()),
            None => None,
        };
        if !self.get(parent(path))?.is_folder() {
            return Err(no_folder(parent(path)));
        }
        self.check_space(content.len() as u64, before.unwrap_or(0))?;
        let stamp = match self.nodes.get(path) {
            // Writing does not change the owner.
            Some(node) => Stamp {
                owner: node.owner.clone(),
                ..stamp.clone()
            },
            None => stamp.clone(),
        };
        self.insert(path, Kind::File(content), &stamp, metadata);
        Ok(before.is_none())
    }

    /// Creates a folder and its missing parents; returns the created paths.
    pub(crate) fn make_all(&mut self, path: &str, stamp: &Stamp) -> Result<Vec<String>> {
        let mut missing = Vec::new();
        let mut at = path;
        loop {
            match self.nodes.get(at) {
                Some(node) if node.is_folder() => break,
                Some(_) => return Err(no_folder(at)),
                None => missing.push(at.to_owned()),
            }
            at = parent(at);
        }
        missing.reverse();
        for path in &missing {
            self.check_space(0, 0)?;
            self.insert(path, Kind::Folder, stamp, BTreeMap::new());
        }
        Ok(missing)
    }

    /// Removes a path and everything below it; returns whether it existed.
    pub(crate) fn remove(&mut self, path: &str) -> bool {
        let paths: Vec<String> = self.below(path).map(|(path, _)| path.clone()).collect();
        for path in &paths {
            self.take_node(path);
        }
        self.take_node(path).is_some()
    }

    /// Renames a path with everything below it. A file or empty folder of the new name is replaced.
    pub(crate) fn rename(&mut self, from: &str, to: &str) -> Result<()> {
        self.get(from)?;
        if to == from {
            return Ok(());
        }
        if to.starts_with(&format!("{from}/")) || from == "/" || to == "/" {
            let message = format!("'{from}' cannot become '{to}'");
            return Err(ConnectError::invalid_argument(message));
        }
        if !self.get(parent(to))?.is_folder() {
            return Err(no_folder(parent(to)));
        }
        let is_full_folder = self.below(to).next().is_some();
        if is_full_folder {
            let message = format!("'{to}': Directory not empty");
            return Err(ConnectError::new(Code::FailedPrecondition, message));
        }
        self.take_node(to);
        let mut moved: Vec<String> = self.below(from).map(|(path, _)| path.clone()).collect();
        moved.push(from.to_owned());
        for path in moved {
            if let Some(node) = self.take_node(&path) {
                self.used += node.bytes();
                let renamed = format!("{to}{}", &path[from.len()..]);
                self.nodes.insert(renamed, node);
            }
        }
        Ok(())
    }

    /// Everything below a path, in order.
    pub(crate) fn below(&self, path: &str) -> impl Iterator<Item = (&String, &Node)> {
        let prefix = match path {
            "/" => "/".to_owned(),
            path => format!("{path}/"),
        };
        let from = self.nodes.range(prefix.clone()..);
        from.take_while(move |(path, _)| path.starts_with(&prefix))
            .filter(|(path, _)| path.as_str() != "/")
    }

    /// All paths except the root.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&String, &Node)> {
        self.below("/")
    }

    fn check_space(&self, more: u64, less: u64) -> Result<()> {
        let required = (self.used + NODE_BYTES + more).saturating_sub(less);
        if required > self.capacity || self.nodes.len() >= MAX_NODES {
            let message = "no space left: the sandbox's disk is full";
            return Err(ConnectError::new(Code::ResourceExhausted, message));
        }
        Ok(())
    }

    fn insert(
        &mut self,
        path: &str,
        kind: Kind,
        stamp: &Stamp,
        metadata: BTreeMap<String, String>,
    ) {
        self.take_node(path);
        let node = Node {
            kind,
            owner: stamp.owner.clone(),
            modified_ms: stamp.now_ms,
            metadata,
        };
        self.used += node.bytes();
        self.nodes.insert(path.to_owned(), node);
    }

    fn take_node(&mut self, path: &str) -> Option<Node> {
        let node = self.nodes.remove(path)?;
        self.used = self.used.saturating_sub(node.bytes());
        Some(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::disk::path::name;

    fn stamp() -> Stamp {
        Stamp {
            owner: "user".to_owned(),
            now_ms: 1,
        }
    }

    fn write(tree: &mut Tree, path: &str, text: &str) -> Result<bool> {
        tree.write(
            path,
            Bytes::copy_from_slice(text.as_bytes()),
            &stamp(),
            BTreeMap::new(),
        )
    }

    #[test]
    fn usage_grows_and_shrinks_with_the_files() {
        let mut tree = Tree::new(10_000);
        let empty = tree.used();
        tree.make_all("/a/b", &stamp()).unwrap();
        assert!(write(&mut tree, "/a/b/c", "text").unwrap());
        assert!(!write(&mut tree, "/a/b/c", "longer text").unwrap());
        tree.rename("/a", "/d").unwrap();
        assert_eq!(tree.read("/d/b/c").unwrap(), "longer text");
        assert!(tree.get("/a").is_err());
        assert!(tree.remove("/d"));
        assert_eq!(tree.used(), empty);
        let full = write(&mut tree, "/big", &"x".repeat(10_000)).unwrap_err();
        assert_eq!(full.code, Code::ResourceExhausted);
    }

    #[test]
    fn a_common_prefix_does_not_make_a_path_a_child() {
        let mut tree = Tree::new(1 << 20);
        for path in ["/a", "/a-b", "/a/x"] {
            tree.make_all(path, &stamp()).unwrap();
        }
        let below: Vec<_> = tree.below("/a").map(|(path, _)| path.as_str()).collect();
        assert_eq!(below, ["/a/x"]);
        assert!(tree.rename("/a", "/a/x/y").is_err());
        assert!(
            tree.rename("/a-b", "/a").is_err(),
            "a folder that is not empty"
        );
    }

    #[test]
    fn files_and_folders_are_not_interchangeable() {
        let mut tree = Tree::new(1 << 20);
        write(&mut tree, "/f", "x").unwrap();
        assert!(write(&mut tree, "/f/g", "x").is_err());
        assert!(write(&mut tree, "/none/g", "x").is_err());
        assert!(tree.make_all("/f/g", &stamp()).is_err());
        assert!(tree.read("/").is_err());
        assert_eq!(
            (parent("/a"), parent("/a/b"), name("/a/b"), name("/")),
            ("/", "/a", "b", "/")
        );
    }
}
