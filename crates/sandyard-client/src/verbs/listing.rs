//! Answers that wrap what was asked for.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Result;
use crate::error::ClientError;
use crate::model::Page;

/// Something under its name; for a list also where it goes on.
#[derive(Deserialize)]
pub(super) struct Wrapped {
    #[serde(default, alias = "next_cursor", alias = "cursor")]
    next: Option<String>,
    #[serde(flatten)]
    parts: serde_json::Map<String, Value>,
}

impl Wrapped {
    /// Takes the list called `name` out.
    pub(super) fn page<T: DeserializeOwned>(
        mut self,
        operation: &'static str,
        name: &str,
    ) -> Result<Page<T>> {
        Ok(Page {
            next: self.next.take().filter(|next| !next.is_empty()),
            items: self.one(operation, name)?,
        })
    }

    /// Takes what is called `name` out.
    pub(super) fn one<T: DeserializeOwned>(
        mut self,
        operation: &'static str,
        name: &str,
    ) -> Result<T> {
        let nonsense = |problem| ClientError::Protocol { operation, problem };
        let value = self
            .parts
            .remove(name)
            .ok_or_else(|| nonsense(format!("there is no `{name}` in it")))?;
        serde_json::from_value(value).map_err(|error| nonsense(error.to_string()))
    }
}
