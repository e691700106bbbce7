//! One setting, and a section of settings.

use crate::kind::Kind;

/// A setting: name, value, documentation.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Its name in the configuration file: `server.port` is `port` below `[server]`.
    pub key: &'static str,
    /// Its key in earlier versions, which files, flags and variables may still use.
    pub former_key: Option<&'static str>,
    /// Further environment variables, the strongest first. [`Setting::variables`] adds the one that every setting has.
    pub env: &'static [&'static str],
    /// Its flag of `sandyard serve`, if it has one.
    pub flag: Option<&'static str>,
    /// What its value may be.
    pub kind: Kind,
    /// Its default value. If it is empty, `when_unset` describes what happens.
    pub default: &'static str,
    /// What happens without a value, if the default is empty.
    pub when_unset: &'static str,
    /// An example value, if the default is empty.
    pub example: &'static str,
    /// Whether its value is never shown.
    pub secret: bool,
    /// Whether it must have a value if its provider is enabled.
    pub required: bool,
    /// Its meaning, unit and bounds, for docs/configuration.md.
    pub doc: &'static str,
}

impl Setting {
    /// A setting with only a key and a kind; the methods below add the rest.
    pub const fn new(key: &'static str, kind: Kind) -> Self {
        Self {
            key,
            former_key: None,
            env: &[],
            flag: None,
            kind,
            default: "",
            when_unset: "none",
            example: "",
            secret: false,
            required: false,
            doc: "",
        }
    }

    /// Sets the value that counts without another one.
    #[must_use]
    pub const fn default(mut self, value: &'static str) -> Self {
        self.default = value;
        self
    }

    /// Says what it is for, with its unit and bounds.
    #[must_use]
    pub const fn doc(mut self, text: &'static str) -> Self {
        self.doc = text;
        self
    }

    /// Adds variables of other programs that it is read from too, strongest first.
    #[must_use]
    pub const fn env(mut self, names: &'static [&'static str]) -> Self {
        self.env = names;
        self
    }

    /// Accepts the key of earlier versions too.
    pub(crate) const fn former_key(mut self, key: &'static str) -> Self {
        self.former_key = Some(key);
        self
    }

    pub(crate) const fn flag(mut self, flag: &'static str) -> Self {
        self.flag = Some(flag);
        self
    }

    /// Says what happens without a value.
    #[must_use]
    pub const fn when_unset(mut self, note: &'static str) -> Self {
        self.when_unset = note;
        self
    }

    /// Adds an example of a value.
    #[must_use]
    pub const fn example(mut self, example: &'static str) -> Self {
        self.example = example;
        self
    }

    /// Hides its value.
    #[must_use]
    pub const fn secret(mut self) -> Self {
        self.secret = true;
        self
    }

    /// Requires a value where the provider of its section is used.
    #[must_use]
    pub const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// The variable that every setting has: `SANDYARD_SERVER_PORT` of `server.port`.
    pub fn own_variable(&self) -> String {
        variable_of(self.key)
    }

    /// All its environment variables, the strongest first: its own one, that of its former key, those of other programs.
    pub fn variables(&self) -> Vec<String> {
        let own = self.own_variable();
        let former = self.former_key.map(variable_of);
        let others = self.env.iter().filter(|name| **name != own);
        let others: Vec<String> = others.map(|name| (*name).to_owned()).collect();
        std::iter::once(own).chain(former).chain(others).collect()
    }

    /// Its key without the section.
    pub fn name(&self) -> &'static str {
        self.key.rsplit('.').next().unwrap_or(self.key)
    }

    /// Hides a secret value, or the password in a URL.
    pub fn mask(&self, text: &str) -> String {
        match self.secret && !text.is_empty() {
            true => "********".to_owned(),
            false => self.kind.mask(text),
        }
    }
}

fn variable_of(key: &str) -> String {
    format!("SANDYARD_{}", key.replace('.', "_").to_uppercase())
}

/// A group of settings: one `[table]` of the configuration file.
#[derive(Debug, Clone, Copy)]
pub struct Section {
    /// Its name in the file; empty for the settings before the first table.
    pub name: &'static str,
    /// Its description.
    pub doc: &'static str,
    /// Its settings, in reading order.
    pub settings: &'static [Setting],
}

/// A provider that this program contains: its name, and the section of its settings.
#[derive(Debug, Clone, Copy)]
pub struct ProviderSettings {
    /// Its name in `sandbox.provider`.
    pub name: &'static str,
    /// Where its sandboxes run, in a few words.
    pub summary: &'static str,
    /// Its own settings, if it has any.
    pub section: Option<Section>,
}
