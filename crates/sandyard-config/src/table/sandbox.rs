//! `[sandbox]`: what sandboxes are made of.

use crate::kind::Kind;
use crate::setting::{Section, Setting};

/// The providers there are.
const PROVIDERS: &[&str] = &["embedded", "docker", "e2b", "daytona", "fake"];

pub(super) const SECTION: Section = Section {
    name: "sandbox",
    doc: "Where sandboxes run and what they start from.",
    settings: &[
        Setting::new(
            "sandbox.provider",
            Kind::Choice(PROVIDERS),
            "embedded",
            "Where sandboxes run when their maker does not say: `embedded` on this host, without Docker; `docker` in containers; \
             `e2b` and `daytona` in those clouds; `fake` nowhere, for tests of programs that use this server.",
        )
        .env(&["SANDBOX_PROVIDER", "SANDYARD_PROVIDER"])
        .flag("--provider"),
        Setting::new(
            "sandbox.providers",
            Kind::Choices(PROVIDERS),
            "",
            "Further providers that sandboxes may ask for by name. Those of `sandbox.fallback` and `sandbox.template_providers` \
             count too.",
        )
        .env(&["SANDYARD_PROVIDERS"])
        .flag("--providers")
        .otherwise("none but `sandbox.provider`")
        .example("embedded,docker"),
        Setting::new(
            "sandbox.fallback",
            Kind::Choices(PROVIDERS),
            "",
            "Who makes a sandbox, in this order, when its provider has no room or cannot be reached, unless its maker insists on one.",
        )
        .env(&["SANDYARD_FALLBACK"])
        .flag("--fallback")
        .otherwise("nobody: the create fails")
        .example("docker,embedded"),
        Setting::new(
            "sandbox.template_providers",
            Kind::Pairs(PROVIDERS),
            "",
            "Which templates are another provider's than the usual one.",
        )
        .env(&["SANDYARD_TEMPLATE_PROVIDERS"])
        .example("python:3.13=docker"),
        Setting::new(
            "sandbox.user_providers",
            Kind::Choices(PROVIDERS),
            "",
            "Which providers users who are no admins get sandboxes from, such as those that cost nothing. Where the default \
             is not among them, they get the first of these.",
        )
        .otherwise("all of them")
        .example("embedded"),
        Setting::new(
            "sandbox.user_templates",
            Kind::Words,
            "",
            "Templates of others, such as images of Docker's, that users who are no admins may name beside the provider's default and what \
             this server keeps; `*` stands for any text.",
        )
        .otherwise("none: only admins name them")
        .example("python:*,node:*"),
        Setting::new(
            "sandbox.agent_program",
            Kind::File,
            "",
            "The program that is put into sandboxes which others make, as their agent and tool server. It must be a static one for their processor.",
        )
        .otherwise("this program itself")
        .example("/usr/local/bin/sandyard"),
        Setting::new(
            "sandbox.template",
            Kind::Text,
            "",
            "What a sandbox of the default provider starts from when its maker names nothing. With the others it is \
             `docker.image`, `e2b_cloud.template` or `daytona.snapshot`. E2B's own variables mean E2B's template where E2B is one of several \
             providers and not the default.",
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
            "Port of the tool server inside each sandbox. Those made before a change keep theirs.",
        )
        .env(&["MCP_PORT", "SANDBOX_MCP_SERVER_PORT"]),
        Setting::new(
            "sandbox.code_server_port",
            Kind::Whole(1, 65_535),
            "9000",
            "Where `vscode_url` points; the template must serve VS Code there (`agent`: 9000).",
        )
        .env(&["SANDBOX_CODE_SERVER_PORT"]),
    ],
};
