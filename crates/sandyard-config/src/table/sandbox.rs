//! `[sandbox]`: providers and templates.

use crate::kind::Kind;
use crate::setting::{Section, Setting};

pub(super) const SECTION: Section = Section {
    name: "sandbox",
    doc: "Where sandboxes run, and which template they start from.",
    settings: &[
        Setting::new("sandbox.provider", Kind::Provider)
            .default("embedded")
            .doc("Default provider: the one of a sandbox whose create request names none.")
            .env(&["SANDBOX_PROVIDER", "SANDYARD_PROVIDER"])
            .flag("--provider"),
        Setting::new("sandbox.providers", Kind::Providers)
            .doc("Further providers that a create request can name. The providers in `sandbox.fallback` and `sandbox.template_providers` \
             are enabled as well.")
            .env(&["SANDYARD_PROVIDERS"])
            .flag("--providers")
            .when_unset("only `sandbox.provider`")
            .example("embedded,docker"),
        Setting::new("sandbox.fallback", Kind::Providers)
            .doc("Providers to try, in this order, if the provider of a new sandbox has no capacity or is unreachable. Does not apply to requests that name a provider.")
            .env(&["SANDYARD_FALLBACK"])
            .flag("--fallback")
            .when_unset("none: the create fails")
            .example("docker,embedded"),
        Setting::new("sandbox.template_providers", Kind::ProviderOfEach)
            .doc("Templates that belong to another provider than the default one, as `template=provider`.")
            .env(&["SANDYARD_TEMPLATE_PROVIDERS"])
            .example("python:3.13=docker"),
        Setting::new("sandbox.user_providers", Kind::Providers)
            .doc("Providers that users who are not admins may use, such as those without costs. If the default provider is not among \
             them, such users get the first one of this list.")
            .when_unset("all providers")
            .example("embedded"),
        Setting::new("sandbox.user_templates", Kind::Tokens)
            .doc("External templates, such as Docker images, that users who are not admins may use in addition to the provider's default and the \
             templates that this server stores. `*` matches any text.")
            .when_unset("none: only admins may use external templates")
            .example("python:*,node:*"),
        Setting::new("sandbox.agent_program", Kind::File)
            .doc("Program that the server installs in sandboxes of other providers, as their agent and tool server. It must be a static binary for their processor.")
            .when_unset("this program")
            .example("/usr/local/bin/sandyard"),
        Setting::new("sandbox.template", Kind::Text)
            .doc("Template of sandboxes at the default provider, if the create request names none. Other providers have a setting of their \
             own. A variable that begins with the name of another enabled provider, such as `E2B_TEMPLATE`, sets the template of that provider \
             instead.")
            .env(&["E2B_TEMPLATE", "E2B_TEMPLATE_ID", "SANDBOX_TEMPLATE_ID", "SANDYARD_TEMPLATE"])
            .flag("--template")
            .when_unset("the provider's default template: `host`, the programs of this machine")
            .example("debian"),
        Setting::new("sandbox.ready", Kind::Integer(0, 1000))
            .default("8")
            .doc("Number of sandboxes of the default template that are kept ready, 0 to 1000, so that a create returns at once. Each needs about 0.25 MiB of memory.")
            .env(&["SANDYARD_READY"])
            .flag("--ready"),
        Setting::new("sandbox.ready_templates", Kind::Counts(1000))
            .default("code-interpreter-v1=1")
            .doc("Number of sandboxes of other templates that are kept ready, with their start programs running, as `template=number`. Templates that do not exist are skipped; `=0` keeps none.")
            .env(&["SANDYARD_READY_TEMPLATES"])
            .example("code-interpreter-v1=2,desktop=1"),
        Setting::new("sandbox.mcp_port", Kind::Integer(1, 65_535))
            .default("6060")
            .doc("Port of the tool server inside each sandbox. A change applies to new sandboxes.")
            .env(&["MCP_PORT", "SANDBOX_MCP_SERVER_PORT"]),
        Setting::new("sandbox.mcp_tools", Kind::Text)
            .default("usable")
            .doc("Tools that the tool server of a sandbox lists: `usable` (those that can work in the sandbox), `all`, or names with commas, where `browser_*` \
             stands for all that begin so. `?tools=` in a client's URL overrides it. Tools that are not listed can still be called.")
            .example("Bash,Read,Write,Edit,browser_*"),
        Setting::new("sandbox.code_server_port", Kind::Integer(1, 65_535))
            .default("9000")
            .doc("Port in `vscode_url`. The template must serve VS Code on this port (the template `agent` uses 9000).")
            .env(&["SANDBOX_CODE_SERVER_PORT"]),
        Setting::new("sandbox.workdir", Kind::AbsolutePath)
            .doc("Directory in which commands and terminals start and from which relative paths lead, the same for every API and the tools. It is \
             created if it is missing. Applies to new sandboxes of the providers `embedded` and `docker`; a create request can set another one with the variable `SANDYARD_WORKDIR`.")
            .when_unset("the user's home; `/workspace` for tools and the Docker-style API")
            .example("/workspace"),
        Setting::new("sandbox.ca_certificates", Kind::File)
            .doc("Path of a PEM file with certificate authorities that programs in every sandbox trust, such as that of a company whose proxy inspects TLS. \
             The gateway trusts them as well. Applies to sandboxes that start after a restart of the server, of the providers `embedded` and `docker`.")
            .when_unset("only those of the template, and the gateway's")
            .example("/etc/sandyard/tls/company-ca.pem"),
    ],
};
