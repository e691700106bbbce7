//! `[sandbox]`, typed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::values::Values;

/// `[sandbox]`: what sandboxes are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxSettings {
    /// The provider of sandboxes whose create request names none.
    pub provider: String,
    /// All providers that a setting names, the default one first.
    pub providers: Vec<String>,
    /// Providers to try, in this order, when the chosen one has no capacity.
    pub fallback: Vec<String>,
    /// Providers of templates.
    pub template_providers: BTreeMap<String, String>,
    /// Providers for users who are no admins; empty for all.
    pub user_providers: Vec<String>,
    /// Templates of others that they may name, as patterns.
    pub user_templates: Vec<String>,
    /// What is put into sandboxes that others make; `None` for this program itself.
    pub agent_program: Option<PathBuf>,
    /// What they start from when their maker names nothing; `None` leaves it to the provider.
    pub template: Option<String>,
    /// The same for another provider than the default one.
    provider_template: Option<(String, String)>,
    /// How many are kept ready.
    pub ready: usize,
    /// How many of which other templates are kept ready.
    pub ready_templates: Vec<(String, usize)>,
    /// Port of the tool server inside.
    pub mcp_port: u16,
    /// Tools that the tool server lists.
    pub mcp_tools: String,
    /// Port of VS Code inside.
    pub code_server_port: u16,
    /// Certificates that every sandbox trusts, in PEM.
    pub ca_certificates: Option<PathBuf>,
    /// Directory of commands, relative paths, tools and terminals; none for the defaults of each API.
    pub workdir: Option<String>,
}

impl SandboxSettings {
    pub(super) fn build(values: &Values) -> Self {
        let provider = values.text("sandbox.provider").unwrap_or_default();
        let provider = provider.to_owned();
        let fallback = values.tokens("sandbox.fallback").to_vec();
        let template_providers: BTreeMap<String, String> = values
            .pairs("sandbox.template_providers")
            .iter()
            .cloned()
            .collect();
        let named = std::iter::once(&provider)
            .chain(values.tokens("sandbox.providers"))
            .chain(&fallback)
            .chain(template_providers.values());
        let mut providers: Vec<String> = Vec::new();
        for name in named {
            if !providers.contains(name) {
                providers.push(name.clone());
            }
        }
        let template = values.text("sandbox.template").map(str::to_owned);
        let owner = provider_of_variable(values, &providers).filter(|name| **name != provider);
        let (template, provider_template) = match (owner, template) {
            (Some(owner), Some(template)) => (None, Some((owner.clone(), template))),
            (_, template) => (template, None),
        };
        Self {
            user_providers: values.tokens("sandbox.user_providers").to_vec(),
            user_templates: values.tokens("sandbox.user_templates").to_vec(),
            agent_program: values.path("sandbox.agent_program"),
            template,
            provider_template,
            ready: values.small("sandbox.ready"),
            ready_templates: ready_templates(values),
            mcp_port: values.small("sandbox.mcp_port"),
            mcp_tools: values
                .text("sandbox.mcp_tools")
                .unwrap_or_default()
                .to_owned(),
            code_server_port: values.small("sandbox.code_server_port"),
            ca_certificates: values.path("sandbox.ca_certificates"),
            workdir: values.text("sandbox.workdir").map(str::to_owned),
            provider,
            providers,
            fallback,
            template_providers,
        }
    }

    /// Whether a provider of that name is used.
    pub fn has(&self, provider: &str) -> bool {
        self.providers.iter().any(|name| name == provider)
    }

    /// The default template of a provider that is not the default one, where a variable of its own tools names it.
    pub fn template_of(&self, provider: &str) -> Option<&str> {
        let (owner, template) = self.provider_template.as_ref()?;
        (owner == provider).then_some(template)
    }
}

/// The provider whose own tools read the variable that the default template comes from: `E2B_TEMPLATE` is read by those of `e2b`.
fn provider_of_variable<'a>(values: &Values, providers: &'a [String]) -> Option<&'a String> {
    let variable = values.origin("sandbox.template").variable()?;
    let is_prefix = |name: &&String| {
        let rest = variable.strip_prefix(&name.to_uppercase());
        rest.is_some_and(|rest| rest.starts_with('_'))
    };
    providers.iter().find(is_prefix)
}

fn ready_templates(values: &Values) -> Vec<(String, usize)> {
    let counts = values.counts("sandbox.ready_templates").iter();
    counts
        .map(|(name, count)| (name.clone(), usize::try_from(*count).unwrap_or(usize::MAX)))
        .collect()
}
