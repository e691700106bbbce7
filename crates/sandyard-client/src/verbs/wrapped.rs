//! Responses that wrap their content in a field.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Result;
use crate::error::ClientError;
use crate::model::Page;

/// Response with its content in a named field; for a list also the cursor of the next page.
#[derive(Deserialize)]
pub(super) struct Wrapped {
    #[serde(default, alias = "next_cursor", alias = "cursor")]
    next: Option<String>,
    #[serde(flatten)]
    fields: serde_json::Map<String, Value>,
}

impl Wrapped {
    /// Extracts the list in the field `name`.
    pub(super) fn page<T: DeserializeOwned>(
        mut self,
        operation: &'static str,
        name: &str,
    ) -> Result<Page<T>> {
        Ok(Page {
            next: self.next.take().filter(|next| !next.is_empty()),
            items: self.field(operation, name)?,
        })
    }

    /// Extracts the field `name`.
    pub(super) fn field<T: DeserializeOwned>(
        mut self,
        operation: &'static str,
        name: &str,
    ) -> Result<T> {
        let invalid = |problem| ClientError::Protocol { operation, problem };
        let value = self
            .fields
            .remove(name)
            .ok_or_else(|| invalid(format!("the field `{name}` is missing")))?;
        serde_json::from_value(value).map_err(|error| invalid(error.to_string()))
    }
}
