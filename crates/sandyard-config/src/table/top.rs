//! What stands above all tables of the file.

use crate::kind::Kind;
use crate::setting::{Section, Setting};

pub(super) const SECTION: Section = Section {
    name: "",
    doc: "Above all tables of the file.",
    settings: &[Setting::new(
        "data_dir",
        Kind::Path,
        "",
        "Where everything is kept: sandboxes, templates, the database, the admin key. For its owner alone (mode 0700).",
    )
    .flag("--data-dir")
    .otherwise("`/var/lib/sandyard` for root, else `~/.local/share/sandyard`")
    .example("/var/lib/sandyard")],
};
