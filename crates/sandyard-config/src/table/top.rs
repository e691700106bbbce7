//! Settings before the first table of the file.

use crate::kind::Kind;
use crate::setting::{Section, Setting};

pub(super) const SECTION: Section = Section {
    name: "",
    doc: "These stand before the first table of the file.",
    settings: &[Setting::new("data_dir", Kind::Path)
        .doc("Directory for all data: sandboxes, templates, the database, the admin key. Only its owner can read it (mode 0700).")
        .flag("--data-dir")
        .when_unset("`/var/lib/sandyard` for root, else `~/.local/share/sandyard`")
        .example("/var/lib/sandyard")],
};
