//! `[sandbox]`, typed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::values::Values;

/// `[sandbox]`: what sandboxes are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxSettings {
    /// Where they run when their maker does not say.
    pub provider: Provider,
    /// All providers that anything names, the default one first.
    pub providers: Vec<Provider>,
    /// Who else makes one, in this order.
    pub fallback: Vec<Provider>,
    /// Which templates are whose.
    pub template_providers: BTreeMap<String, Provider>,
    /// Which ones users who are no admins get; empty for all.
    pub user_providers: Vec<Provider>,
    /// Templates of others that they may name, as patterns.
    pub user_templates: Vec<String>,
    /// What is put into sandboxes that others make; `None` for this program itself.
    pub agent_program: Option<PathBuf>,
    /// What they start from when their maker names nothing; `None` leaves it to the provider.
    pub template: Option<String>,
    /// The same with E2B, as E2B's own variables say it where E2B is not the default provider.
    pub(super) e2b_template: Option<String>,
    /// How many are kept ready.
    pub ready: usize,
    /// How many of which other templates are kept ready.
    pub ready_templates: Vec<(String, usize)>,
    /// Port of the tool server inside.
    pub mcp_port: u16,
    /// Port of VS Code inside.
    pub code_server_port: u16,
}

/// The providers there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "their names say it")]
pub enum Provider {
    Embedded,
    Docker,
    E2b,
    Daytona,
    Fake,
}

impl Provider {
    /// The word for it in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Docker => "docker",
            Self::E2b => "e2b",
            Self::Daytona => "daytona",
            Self::Fake => "fake",
        }
    }

    fn of(word: &str) -> Self {
        match word {
            "docker" => Self::Docker,
            "e2b" => Self::E2b,
            "daytona" => Self::Daytona,
            "fake" => Self::Fake,
            _ => Self::Embedded,
        }
    }
}

impl SandboxSettings {
    pub(super) fn build(values: &Values, working_dir: &Path) -> Self {
        let list = |key| values.words(key).iter().map(|word| Provider::of(word));
        let provider = Provider::of(values.text("sandbox.provider").unwrap_or_default());
        let fallback: Vec<Provider> = list("sandbox.fallback").collect();
        let template_providers: BTreeMap<String, Provider> = values
            .pairs("sandbox.template_providers")
            .iter()
            .map(|(name, word)| (name.clone(), Provider::of(word)))
            .collect();
        let named = std::iter::once(provider)
            .chain(list("sandbox.providers"))
            .chain(fallback.iter().copied())
            .chain(template_providers.values().copied());
        let mut providers = Vec::new();
        for one in named {
            if !providers.contains(&one) {
                providers.push(one);
            }
        }
        let template = values.text("sandbox.template").map(str::to_owned);
        let (template, e2b_template) = match is_said_by_e2b(values)
            && provider != Provider::E2b
            && providers.contains(&Provider::E2b)
        {
            true => (None, template),
            false => (template, None),
        };
        Self {
            provider,
            providers,
            fallback,
            template_providers,
            user_providers: list("sandbox.user_providers").collect(),
            user_templates: values.words("sandbox.user_templates").to_vec(),
            agent_program: values.path("sandbox.agent_program", working_dir),
            template,
            e2b_template,
            ready: values.small("sandbox.ready"),
            ready_templates: ready_templates(values),
            mcp_port: values.small("sandbox.mcp_port"),
            code_server_port: values.small("sandbox.code_server_port"),
        }
    }

    /// Whether sandboxes may be there.
    pub fn has(&self, provider: Provider) -> bool {
        self.providers.contains(&provider)
    }
}

/// Whether the default template comes from a variable that E2B's own tools read.
fn is_said_by_e2b(values: &Values) -> bool {
    let variable = values.origin("sandbox.template").variable();
    variable.is_some_and(|name| name.starts_with("E2B_"))
}

fn ready_templates(values: &Values) -> Vec<(String, usize)> {
    let counts = values.counts("sandbox.ready_templates").iter();
    counts
        .map(|(name, count)| (name.clone(), usize::try_from(*count).unwrap_or(usize::MAX)))
        .collect()
}
