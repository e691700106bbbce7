//! Fills a layer from a directory tree.

use std::path::Path;

use rustix::fs::Stat;

use crate::budget::Budget;
use crate::copy::{Owners, Rules, copy_tree};
use crate::error::Result;
use crate::tree::Tree;
use crate::xattr::Origin;

/// Copies `source` into `root`, except the store's own layers should they lie in it: the copy would never end.
pub(super) fn copy(
    source: &Tree,
    root: &Tree,
    owners: Owners,
    layers: &Path,
    budget: &mut Budget<'_>,
) -> Result<()> {
    let own = Tree::open(layers)
        .ok()
        .and_then(|tree| rustix::fs::fstat(&tree).ok());
    let own = own.map(|stat| (stat.st_dev, stat.st_ino));
    let admit = |_: &Path, stat: &Stat, _: Option<&[u8]>| Some((stat.st_dev, stat.st_ino)) != own;
    let rules = Rules {
        origin: Origin::Foreign,
        owners,
        admit: &admit,
    };
    copy_tree(source, root, &rules, budget)
}
