//! `[sandbox]`: what sandboxes are made of.

use crate::kind::Kind;
use crate::setting::{Section, Setting};

pub(super) const SECTION: Section = Section {
    name: "sandbox",
    doc: "Where sandboxes run and what they start from.",
    settings: &[
        Setting::new(
            "sandbox.provider",
            Kind::Choice(&["embedded", "docker", "e2b", "daytona", "kubernetes", "fake"]),
            "embedded",
            "Where sandboxes run. This version has `embedded`: on this host, without Docker.",
        )
        .env(&["SANDBOX_PROVIDER", "SANDYARD_PROVIDER"])
        .flag("--provider"),
        Setting::new(
            "sandbox.template",
            Kind::Text,
            "",
            "What a sandbox starts from when its maker names nothing.",
        )
        .env(&["E2B_TEMPLATE", "E2B_TEMPLATE_ID", "SANDBOX_TEMPLATE_ID", "SANDYARD_TEMPLATE"])
        .flag("--template")
        .otherwise("the provider's default template: `host`, the programs of this machine")
        .example("debian"),
        Setting::new(
            "sandbox.ready",
            Kind::Whole(0, 1000),
            "8",
            "Sandboxes of the default template kept ready, so that a create only hands one over. Each costs about a quarter of a MiB.",
        )
        .env(&["SANDYARD_READY"])
        .flag("--ready"),
        Setting::new(
            "sandbox.ready_templates",
            Kind::Counts(1000),
            "code-interpreter-v1=1",
            "How many sandboxes of which other templates are kept ready, with their start programs running. A template that does not exist is passed over until it does; `=0` keeps none.",
        )
        .env(&["SANDYARD_READY_TEMPLATES"])
        .example("code-interpreter-v1=2,desktop=1"),
        Setting::new(
            "sandbox.mcp_port",
            Kind::Whole(1, 65_535),
            "6060",
            "Port of the tool server inside each sandbox.",
        )
        .env(&["MCP_PORT", "SANDBOX_MCP_SERVER_PORT"]),
        Setting::new(
            "sandbox.code_server_port",
            Kind::Whole(1, 65_535),
            "9000",
            "Port of VS Code inside each sandbox.",
        )
        .env(&["SANDBOX_CODE_SERVER_PORT"]),
    ],
};
