//! The table of settings: a file for each of the server's own sections; those of providers are in their folders.
//!
//! To add one: a row here, a field in [`settings`](crate::settings), and `UPDATE_DOCS=1 cargo test -p sandyard-config`.

mod auth;
mod database;
mod e2b;
mod gateway;
mod lifecycle;
mod limits;
mod log;
mod logs;
mod node;
mod redis;
mod sandbox;
mod secrets;
mod server;
mod top;

use std::sync::Arc;

use crate::setting::{ProviderSettings, Section, Setting};

/// The server's own sections that come before those of providers.
static FIRST: [Section; 11] = [
    top::SECTION,
    server::SECTION,
    e2b::SECTION,
    auth::SECTION,
    database::SECTION,
    redis::SECTION,
    sandbox::SECTION,
    lifecycle::SECTION,
    logs::SECTION,
    limits::SECTION,
    gateway::SECTION,
];

/// The server's own sections that come after them.
static LAST: [Section; 3] = [secrets::SECTION, node::SECTION, log::SECTION];

/// Variables with the prefix `SANDYARD_` that are not settings, and their meaning.
pub const OTHER_VARIABLES: [(&str, &str); 4] = [
    (
        "SANDYARD_CONFIG",
        "Path of the configuration file, like `--config`. The file must exist.",
    ),
    ("SANDYARD_URL", "For the command line: URL of the server."),
    (
        "SANDYARD_API_KEY",
        "For the command line: API key for the server.",
    ),
    (
        "SANDYARD_CA_CERT",
        "For the command line: path of a PEM file with certificate authorities to trust in addition to the host's.",
    ),
];

/// All settings: the server's own, and those of the providers that the program contains.
///
/// This crate does not know the providers: their folders declare them, and the program hands them over.
#[derive(Clone, Debug, Default)]
pub struct Table(Arc<[&'static ProviderSettings]>);

impl Table {
    /// The table of a program that contains these providers.
    pub fn new(providers: impl IntoIterator<Item = &'static ProviderSettings>) -> Self {
        Self(providers.into_iter().collect())
    }

    /// The providers of the program.
    pub fn providers(&self) -> &[&'static ProviderSettings] {
        &self.0
    }

    /// Names of the providers, as settings write them.
    pub fn provider_names(&self) -> Vec<&'static str> {
        self.0.iter().map(|provider| provider.name).collect()
    }

    /// The sections, in the order people should read them.
    pub fn sections(&self) -> impl Iterator<Item = &'static Section> {
        let providers = self
            .0
            .iter()
            .filter_map(|provider| provider.section.as_ref());
        FIRST.iter().chain(providers).chain(&LAST)
    }

    /// All settings of all sections.
    pub fn all(&self) -> impl Iterator<Item = &'static Setting> {
        self.sections().flat_map(|section| section.settings)
    }

    /// Finds a setting by its key, or by its key in earlier versions.
    pub fn setting(&self, key: &str) -> Option<&'static Setting> {
        let has_key = |setting: &&Setting| setting.key == key || setting.former_key == Some(key);
        self.all().find(has_key)
    }
}
