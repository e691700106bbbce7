//! The value in force of every setting, with its origin.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sandyard_core::network::Target;

use crate::kind::network::Network;
use crate::kind::sealing_key::SealingKey;
use crate::kind::{Kind, Value};
use crate::secret::Secret;
use crate::setting::Setting;
use crate::source::Origin;
use crate::table::Table;

/// What is in force, setting by setting. Made by [`load`](crate::load()), shown by [`show`](crate::show).
#[derive(Clone)]
pub struct Values {
    table: Table,
    /// Relative paths count from here.
    working_dir: PathBuf,
    entries: BTreeMap<&'static str, Entry>,
}

#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) setting: &'static Setting,
    pub(crate) text: String,
    pub(crate) origin: Origin,
    /// What the text means. Of a faulty text: what the default means.
    pub(crate) value: Value,
    pub(crate) is_faulty: bool,
}

impl Values {
    pub(crate) fn new(table: &Table, working_dir: &Path) -> Self {
        Self {
            table: table.clone(),
            working_dir: working_dir.to_owned(),
            entries: BTreeMap::new(),
        }
    }

    /// Takes a value in; says what is wrong with it.
    pub(crate) fn insert(
        &mut self,
        setting: &'static Setting,
        text: &str,
        origin: Origin,
    ) -> Result<(), String> {
        let parsed = self.parse(setting.kind, text);
        let is_faulty = parsed.is_err();
        let (value, outcome) = match parsed {
            Ok(value) => (value, Ok(())),
            Err(problem) => {
                let value = self.parse(setting.kind, setting.default);
                (value.unwrap_or(Value::Nothing), Err(problem))
            }
        };
        let entry = Entry {
            setting,
            text: text.to_owned(),
            origin,
            value,
            is_faulty,
        };
        self.entries.insert(setting.key, entry);
        outcome
    }

    /// No kind has to deal with an empty text: it is no value.
    fn parse(&self, kind: Kind, text: &str) -> Result<Value, String> {
        match text.is_empty() {
            true => Ok(Value::Nothing),
            false => kind.parse(text, &self.table.provider_names()),
        }
    }

    /// The text in force, with secrets hidden; empty if there is none.
    pub fn masked_text(&self, key: &str) -> String {
        let entry = self.entries.get(key);
        entry.map_or_else(String::new, |entry| entry.setting.mask(&entry.text))
    }

    /// Where the value of a setting comes from.
    pub fn origin(&self, key: &str) -> &Origin {
        self.entries
            .get(key)
            .map_or(&Origin::Default, |entry| &entry.origin)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        let settings = self.table.all();
        settings.filter_map(|setting| self.entries.get(setting.key))
    }

    /// Whether a source gives it a value.
    pub fn is_given(&self, key: &str) -> bool {
        *self.origin(key) != Origin::Default
    }

    pub(crate) fn is_faulty(&self, key: &str) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.is_faulty)
    }

    fn value(&self, key: &str) -> &Value {
        self.entries
            .get(key)
            .map_or(&Value::Nothing, |entry| &entry.value)
    }

    // What follows reads values of the kind the table gives them. Asking for another kind is a mistake that the first test meets:
    // every load asks for every setting.

    /// A text.
    ///
    /// # Panics
    /// When the table gives the setting another kind, like the methods below.
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.value(key) {
            Value::Text(text) => Some(text),
            Value::Nothing => None,
            _ => unreachable!("`{key}` is no text in the table"),
        }
    }

    /// A switch.
    pub fn switch(&self, key: &str) -> bool {
        matches!(self.value(key), Value::Switch(true))
    }

    pub(crate) fn number(&self, key: &str) -> u64 {
        match self.value(key) {
            Value::Number(number) => *number,
            _ => unreachable!("`{key}` is not a number in the table"),
        }
    }

    /// A number that somebody said.
    pub(crate) fn given_number(&self, key: &str) -> Option<u64> {
        match self.value(key) {
            Value::Number(number) if self.is_given(key) => Some(*number),
            _ => None,
        }
    }

    /// A number or a time span, for comparing two of a kind; `None` where nothing is said and nothing holds by default.
    pub(crate) fn amount(&self, key: &str) -> Option<u64> {
        match self.value(key) {
            Value::Number(number) => Some(*number),
            Value::Duration(duration) => Some(duration.as_secs()),
            Value::Nothing => None,
            _ => unreachable!("`{key}` is no amount in the table"),
        }
    }

    /// A number whose range in the table fits `T`.
    pub(crate) fn small<T: TryFrom<u64>>(&self, key: &str) -> T {
        T::try_from(self.number(key))
            .unwrap_or_else(|_| unreachable!("the range of `{key}` in the table is too wide"))
    }

    /// The same for a number that need not be there.
    pub fn maybe_small<T: TryFrom<u64>>(&self, key: &str) -> Option<T> {
        match self.value(key) {
            Value::Nothing => None,
            _ => Some(self.small(key)),
        }
    }

    /// A time span.
    pub fn duration(&self, key: &str) -> Duration {
        match self.value(key) {
            Value::Duration(duration) => *duration,
            _ => unreachable!("`{key}` is no time span in the table"),
        }
    }

    /// A time span of which zero means none.
    pub(crate) fn bound(&self, key: &str) -> Option<Duration> {
        Some(self.duration(key)).filter(|duration| !duration.is_zero())
    }

    /// A number of which zero means none.
    pub(crate) fn count(&self, key: &str) -> Option<u64> {
        Some(self.number(key)).filter(|number| *number > 0)
    }

    /// A path.
    pub fn path(&self, key: &str) -> Option<PathBuf> {
        self.text(key).map(|text| self.working_dir.join(text))
    }

    /// A text that is never shown.
    pub fn secret(&self, key: &str) -> Option<Secret> {
        self.text(key).map(|text| Secret::new(text.to_owned()))
    }

    pub(crate) fn ports(&self, key: &str) -> &[u16] {
        match self.value(key) {
            Value::Ports(ports) => ports,
            _ => &[],
        }
    }

    pub(crate) fn addresses(&self, key: &str) -> &[IpAddr] {
        match self.value(key) {
            Value::Addresses(addresses) => addresses,
            _ => &[],
        }
    }

    pub(crate) fn networks(&self, key: &str) -> &[Network] {
        match self.value(key) {
            Value::Networks(networks) => networks,
            _ => &[],
        }
    }

    pub(crate) fn targets(&self, key: &str) -> &[Target] {
        match self.value(key) {
            Value::Targets(targets) => targets,
            _ => &[],
        }
    }

    pub(crate) fn name_servers(&self, key: &str) -> &[SocketAddr] {
        match self.value(key) {
            Value::NameServers(servers) => servers,
            _ => &[],
        }
    }

    pub(crate) fn tokens(&self, key: &str) -> &[String] {
        match self.value(key) {
            Value::Tokens(tokens) => tokens,
            Value::Nothing => &[],
            _ => unreachable!("`{key}` is not a list of words in the table"),
        }
    }

    pub(crate) fn pairs(&self, key: &str) -> &[(String, String)] {
        match self.value(key) {
            Value::Pairs(pairs) => pairs,
            Value::Nothing => &[],
            _ => unreachable!("`{key}` is not a list of pairs in the table"),
        }
    }

    pub(crate) fn counts(&self, key: &str) -> &[(String, u64)] {
        match self.value(key) {
            Value::Counts(counts) => counts,
            _ => &[],
        }
    }

    pub(crate) fn sealing_key(&self, key: &str) -> Option<&SealingKey> {
        match self.value(key) {
            Value::SealingKey(key) => Some(key),
            _ => None,
        }
    }
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self
            .entries()
            .map(|entry| (entry.setting.key, entry.setting.mask(&entry.text)));
        f.debug_map().entries(entries).finish()
    }
}

impl PartialEq for Values {
    /// Two are equal when the same texts are in force, wherever they come from.
    fn eq(&self, other: &Self) -> bool {
        let texts = |values: &Self| -> Vec<(&'static str, String)> {
            let entries = values.entries.iter();
            entries
                .map(|(key, entry)| (*key, entry.text.clone()))
                .collect()
        };
        self.working_dir == other.working_dir && texts(self) == texts(other)
    }
}

impl Eq for Values {}
