//! One row of the table, and the sections rows come in.

use crate::kind::Kind;

/// Everything there is to say about one setting.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Its name in the configuration file: `server.port` is `port` below `[server]`.
    pub key: &'static str,
    /// Further variables it is read from, strongest first. [`Setting::variables`] adds the one that every setting has.
    pub env: &'static [&'static str],
    /// Its flag of `sandyard serve`, if it has one.
    pub flag: Option<&'static str>,
    /// What its value may be.
    pub kind: Kind,
    /// Its value when nothing is said. Empty: none, and `otherwise` says what then.
    pub default: &'static str,
    /// What happens without a value, where the default is empty.
    pub otherwise: &'static str,
    /// A value to show where the default is empty.
    pub example: &'static str,
    /// Its value is never shown.
    pub secret: bool,
    /// What it is for, in sentences.
    pub doc: &'static str,
}

impl Setting {
    /// Starts a row; the methods below fill in the rest.
    pub(crate) const fn new(
        key: &'static str,
        kind: Kind,
        default: &'static str,
        doc: &'static str,
    ) -> Self {
        Self {
            key,
            env: &[],
            flag: None,
            kind,
            default,
            otherwise: "none",
            example: "",
            secret: false,
            doc,
        }
    }

    pub(crate) const fn env(mut self, names: &'static [&'static str]) -> Self {
        self.env = names;
        self
    }

    pub(crate) const fn flag(mut self, flag: &'static str) -> Self {
        self.flag = Some(flag);
        self
    }

    pub(crate) const fn otherwise(mut self, note: &'static str) -> Self {
        self.otherwise = note;
        self
    }

    pub(crate) const fn example(mut self, example: &'static str) -> Self {
        self.example = example;
        self
    }

    pub(crate) const fn secret(mut self) -> Self {
        self.secret = true;
        self
    }

    /// The variable that every setting has: `SANDYARD_SERVER_PORT` of `server.port`.
    pub fn own_variable(&self) -> String {
        format!("SANDYARD_{}", self.key.replace('.', "_").to_uppercase())
    }

    /// All variables it is read from, strongest first; its own one before those of other programs.
    pub fn variables(&self) -> Vec<String> {
        let own = self.own_variable();
        let others = self.env.iter().filter(|name| **name != own);
        let others: Vec<String> = others.map(|name| (*name).to_owned()).collect();
        std::iter::once(own).chain(others).collect()
    }

    /// Its key without the section.
    pub fn name(&self) -> &'static str {
        self.key.rsplit('.').next().unwrap_or(self.key)
    }

    /// Hides what must not be shown of a value: all of a secret, the password of a URL.
    pub fn mask(&self, text: &str) -> String {
        match self.secret && !text.is_empty() {
            true => "********".to_owned(),
            false => self.kind.mask(text),
        }
    }
}

/// Settings that belong together: one `[table]` of the configuration file.
#[derive(Debug, Clone, Copy)]
pub struct Section {
    /// Its name in the file. Empty: what stands above all tables.
    pub name: &'static str,
    /// What it is about, in sentences.
    pub doc: &'static str,
    /// Its settings, in the order people should read them.
    pub settings: &'static [Setting],
}
