//! The registry: every provider that this program contains.
//!
//! A provider's folder holds its [`Registration`]: name, settings, capabilities, and how it is connected. Settings, command line,
//! OpenAPI document, documentation and conformance test read the registry, so that a new provider is one folder and one line in
//! [`Registry::BUILTIN`].

mod connect;

use std::pin::Pin;
use std::sync::Arc;

use sandyard_config::{ProviderSettings, Table};
use sandyard_provider::{Capabilities, Provider, Result};

pub(crate) use connect::start_gateway;
pub use connect::{ConnectContext, connect_later, layered};

/// A connection attempt.
pub type Connecting<'a> = Pin<Box<dyn Future<Output = Result<Arc<dyn Provider>>> + Send + 'a>>;

/// One provider: everything that the rest of the program knows about it.
#[derive(Debug)]
pub struct Registration {
    /// Its name and its settings.
    pub settings: ProviderSettings,
    /// What it can do at best; a connected provider may lack some of it.
    pub capabilities: Capabilities,
    /// Connects it, with its layers around it.
    pub connect: for<'a> fn(ConnectContext<'a>) -> Connecting<'a>,
}

impl Registration {
    /// Its name in settings and answers.
    pub fn name(&self) -> &'static str {
        self.settings.name
    }
}

/// A list of providers.
#[derive(Clone, Copy, Debug)]
pub struct Registry(&'static [&'static Registration]);

impl Registry {
    /// The providers of this program, in the order people should read them.
    pub const BUILTIN: Self = Self(&[
        &crate::embedded::REGISTRATION,
        &crate::docker::REGISTRATION,
        &crate::e2b::REGISTRATION,
        &crate::daytona::REGISTRATION,
        &crate::fake::REGISTRATION,
    ]);

    /// A registry of other providers.
    pub const fn new(providers: &'static [&'static Registration]) -> Self {
        Self(providers)
    }

    /// All providers.
    pub fn all(self) -> impl Iterator<Item = &'static Registration> {
        self.0.iter().copied()
    }

    /// Names of all providers.
    pub fn names(self) -> Vec<&'static str> {
        self.all().map(Registration::name).collect()
    }

    /// The provider of that name.
    pub fn get(self, name: &str) -> Option<&'static Registration> {
        self.all().find(|provider| provider.name() == name)
    }

    /// The table of settings of a program with these providers.
    pub fn table(self) -> Table {
        Table::new(self.all().map(|provider| &provider.settings))
    }

    /// The table of `docs/providers.md`: what each provider can do.
    pub fn markdown(self) -> String {
        type Column = (&'static str, fn(&Capabilities) -> bool);
        let columns: [Column; 9] = [
            ("pause", |can| can.can_pause),
            ("stop", |can| can.can_stop),
            ("snapshot", |can| can.can_snapshot),
            ("fork", |can| can.can_fork),
            ("diff", |can| can.can_diff),
            ("import templates", |can| can.can_import_templates),
            ("enforce limits", |can| can.can_limit),
            ("volumes", |can| can.can_mount),
            ("usage history", |can| can.can_recall_usage),
        ];
        let names: String = columns.map(|(name, _)| format!(" {name} |")).concat();
        let rule = "---|".repeat(columns.len() + 2);
        let mut text = format!("| provider | sandboxes run |{names}\n|{rule}\n");
        for provider in self.all() {
            let can = |(_, can): Column| match can(&provider.capabilities) {
                true => " yes |",
                false => " no |",
            };
            let row: String = columns.map(can).concat();
            let (name, summary) = (provider.name(), provider.settings.summary);
            text.push_str(&format!("| `{name}` | {summary} |{row}\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests;
