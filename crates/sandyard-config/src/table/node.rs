//! `[node]`: one server among several.

use crate::kind::Kind;
use crate::setting::{Section, Setting};

pub(super) const SECTION: Section = Section {
    name: "node",
    doc: "For several servers on one database. Each makes its own id at its first start.",
    settings: &[Setting::new(
        "node.url",
        Kind::HttpUrl,
        "",
        "How the other servers reach this one. A sandbox lives on one server; the others forward to it.",
    )
    .env(&["SANDYARD_NODE_URL"])
    .otherwise("this server's sandboxes cannot be reached through the others")
    .example("http://10.0.0.5:8100")],
};
