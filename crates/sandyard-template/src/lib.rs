//! What sandboxes start from: templates, layers, imports, snapshots and diffs.
//!
//! A *template* is a list of [`Part`]s. Each part becomes one overlay mount inside the sandbox: read-only *layers* below
//! (top first), an upper directory of the sandbox's own above. Layers are plain directory trees whose owners are numbers
//! as seen inside (0 is the sandbox's root); nothing here ever shifts an id, the engine maps them when it mounts.
//!
//! ```text
//! <root>/templates/<name>.json     manifests; a template exists from the rename of this file on
//! <root>/templates/.lock           flock held while manifests change or layers are condemned
//! <root>/layers/<name>-<random>/   one layer: the tree itself is `tree/`; flock held while it is being filled
//! ```
//!
//! | to                                   | read          |
//! |--------------------------------------|---------------|
//! | find, list, remove, sweep            | [`Store`]     |
//! | start from what the host has         | `host/`       |
//! | start from a tree, a tarball, an image | `import/`   |
//! | keep what a sandbox changed          | `snapshot.rs` |
//! | list what a sandbox changed          | `diff.rs`     |
//! | find what is shown at a path         | `lookup.rs`   |
//! | know whiteouts and opaque directories| `overlay.rs`  |
//!
//! Everything is synchronous, starts no thread and keeps no state in memory, because the launcher forks without exec.
//! This crate mounts nothing and knows nothing of sandboxes: callers pass the layers in use to [`Store::sweep`].

#![forbid(unsafe_code)]

mod budget;
mod build;
mod copy;
mod diff;
mod error;
mod host;
mod import;
mod layer;
mod lookup;
mod manifest;
mod merged;
mod name;
mod overlay;
mod remove;
mod snapshot;
mod store;
mod target;
mod tree;
mod xattr;

pub use budget::{Counts, Limits, Progress};
pub use copy::Owners;
pub use diff::{Change, ChangeKind, Diff, DiffOptions, FileType, diff, diff_with};
pub use error::TemplateError;
pub use host::{HOST_TEMPLATE, HostOptions};
pub use import::{ImportOptions, Imported};
pub use lookup::{Entry, Folder, LayerFile, ResolvedPath, TemplateLookup};
pub use manifest::{Defaults, Kind, Part, Template};
pub use name::is_valid_name;
pub use remove::remove_tree;
pub use snapshot::MAX_LAYERS;
pub use store::{Store, SweepOptions, Swept};
