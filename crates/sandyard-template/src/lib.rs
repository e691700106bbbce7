//! What sandboxes start from: templates, layers, imports, snapshots and diffs.
