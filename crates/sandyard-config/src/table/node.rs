//! `[node]`: several servers on one database.

use crate::kind::Kind;
use crate::setting::{Section, Setting};

pub(super) const SECTION: Section = Section {
    name: "node",
    doc: "For several servers on one database.",
    settings: &[Setting::new("node.url", Kind::HttpUrl)
        .doc("URL at which the other servers reach this one. A sandbox runs on one server; the others forward requests to it.")
        .env(&["SANDYARD_NODE_URL"])
        .when_unset("the other servers cannot reach this server's sandboxes")
        .example("http://10.0.0.5:8100")],
};
