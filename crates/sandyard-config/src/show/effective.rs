//! What is in force and where it was said, as a table and as JSON. Secrets are hidden.

use serde_json::{Map, Value as Json, json};

use crate::values::Values;

impl Values {
    /// Writes a table for people: setting, value, origin.
    pub fn to_table(&self) -> String {
        let header = ["SETTING", "VALUE", "FROM"].map(str::to_owned);
        let rows: Vec<[String; 3]> = std::iter::once(header)
            .chain(self.entries().map(|entry| {
                let key = entry.setting.key;
                let text = match self.masked_text(key) {
                    text if text.is_empty() => "-".to_owned(),
                    text => text.escape_debug().to_string(),
                };
                [key.to_owned(), text, entry.origin.to_string()]
            }))
            .collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
        let (first, second) = (width(0).unwrap_or(0), width(1).unwrap_or(0));
        let line = |row: &[String; 3]| {
            let [key, value, origin] = row;
            format!("{key:<first$}  {value:<second$}  {origin}\n")
        };
        rows.iter().map(line).collect()
    }

    /// Writes an object for programs: by key the value as text, or null if there is none, and its origin.
    pub fn to_json(&self) -> Json {
        let entries = self.entries().map(|entry| {
            let key = entry.setting.key;
            let text = Some(self.masked_text(key)).filter(|text| !text.is_empty());
            let object = json!({
                "value": text,
                "origin": entry.origin.to_string(),
                "secret": entry.setting.secret,
            });
            (key.to_owned(), object)
        });
        Json::Object(entries.collect::<Map<_, _>>())
    }
}
