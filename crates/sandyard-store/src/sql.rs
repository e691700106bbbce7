//! Builds statements with values, and reads rows by column name.

use std::borrow::Cow;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::{Arguments, AssertSqlSafe, Row};

use crate::error::{Result, StoreError};

/// Statements with more values than this contain lists of varying length and hardly repeat. They are not kept as prepared statements, because
/// they would evict the others.
const MAX_PREPARED_VALUES: usize = 40;

/// A statement with its values. Untrusted text is always a value, never part of the statement.
#[derive(Clone)]
pub(crate) struct Sql {
    text: Cow<'static, str>,
    values: Vec<SqlValue>,
    is_repeatable: bool,
}

#[derive(Clone)]
enum SqlValue {
    Text(Option<String>),
    Int(Option<i64>),
}

/// Starts a statement.
pub(crate) fn sql(text: &'static str) -> Sql {
    Sql {
        text: Cow::Borrowed(text),
        values: Vec::new(),
        is_repeatable: false,
    }
}

impl Sql {
    /// Binds the next `$n` to a text. PostgreSQL cannot store a NUL in a text, so NULs are replaced.
    pub(crate) fn text(self, value: &str) -> Self {
        self.maybe_text(Some(value))
    }

    /// Binds the next `$n` to a text, or to NULL.
    pub(crate) fn maybe_text(mut self, value: Option<&str>) -> Self {
        let value = value.map(|text| text.replace('\0', "\u{fffd}"));
        self.values.push(SqlValue::Text(value));
        self
    }

    /// Binds the next `$n` to a number.
    pub(crate) fn int(self, value: i64) -> Self {
        self.maybe_int(Some(value))
    }

    /// Binds the next `$n` to a number, or to NULL.
    pub(crate) fn maybe_int(mut self, value: Option<i64>) -> Self {
        self.values.push(SqlValue::Int(value));
        self
    }

    /// Binds the next `$n` to 1 or 0.
    pub(crate) fn flag(self, value: bool) -> Self {
        self.int(value.into())
    }

    /// Binds the next `$n` to a value as JSON.
    pub(crate) fn json(self, value: &impl Serialize) -> Self {
        // The model has only maps with text keys and plain values, which JSON can always represent.
        let json = serde_json::to_string(value).expect("the model is plain JSON");
        self.text(&json)
    }

    /// Binds the next `$n` to the name of an enum's variant.
    pub(crate) fn variant(self, value: &impl Serialize) -> Self {
        self.text(&variant(value))
    }

    /// Appends text.
    pub(crate) fn add(mut self, text: &str) -> Self {
        self.text.to_mut().push_str(text);
        self
    }

    /// Appends `text` and the next `$n`, which the following call binds.
    pub(crate) fn add_next(self, text: &str) -> Self {
        let next = self.values.len() + 1;
        self.add(text).add(&format!("${next}"))
    }

    /// Appends `($1, $2, …)` with these texts.
    pub(crate) fn add_texts<'t>(mut self, texts: impl IntoIterator<Item = &'t str>) -> Self {
        let mut before = "(";
        for text in texts {
            self = self.add_next(before).text(text);
            before = ", ";
        }
        self.add(")")
    }

    /// Marks the statement as idempotent, so that it may be repeated after a broken connection.
    pub(crate) fn repeatable(mut self) -> Self {
        self.is_repeatable = true;
        self
    }

    pub(crate) fn is_repeatable(&self) -> bool {
        self.is_repeatable
    }

    /// The statement for `sqlx`. Its text consists only of literals and `$n`.
    pub(crate) fn query(&self) -> sqlx::query::Query<'static, sqlx::Any, AnyArguments> {
        let mut arguments = AnyArguments::default();
        for value in &self.values {
            match value {
                SqlValue::Text(text) => arguments.add(text.clone()),
                SqlValue::Int(number) => arguments.add(*number),
            }
            .expect("texts and numbers can always be sent");
        }
        let is_prepared = self.values.len() <= MAX_PREPARED_VALUES;
        sqlx::query_with(AssertSqlSafe(self.text.clone()), arguments).persistent(is_prepared)
    }
}

/// The name of a variant of an enum without fields.
fn variant(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        other => unreachable!("an enum without fields is a string, not {other:?}"),
    }
}

/// `"name":"value"` as in the column. Quotes inside a text are escaped, so it matches only a real pair. Unlike the engines' JSON functions,
/// this works in both.
pub(crate) fn json_pair(name: &str, value: &str) -> String {
    format!("{}{}", quoted(name), json_value(value))
}

/// `:"value"` as in the column, with any name.
pub(crate) fn json_value(value: &str) -> String {
    format!(":{}", quoted(value))
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Reads a row by column name.
pub(crate) struct Record<'r> {
    row: &'r AnyRow,
    table: &'static str,
}

impl<'r> Record<'r> {
    pub(crate) fn new(table: &'static str, row: &'r AnyRow) -> Self {
        Self { row, table }
    }

    /// The first column as a number.
    pub(crate) fn first_int(table: &'static str, row: &'r AnyRow) -> Result<Option<i64>> {
        row.try_get(0)
            .map_err(|error| corrupt(table, "first", &error))
    }

    pub(crate) fn maybe_text(&self, name: &str) -> Result<Option<String>> {
        self.row
            .try_get(name)
            .map_err(|error| corrupt(self.table, name, &error))
    }

    pub(crate) fn text(&self, name: &str) -> Result<String> {
        self.maybe_text(name)?
            .ok_or_else(|| corrupt(self.table, name, &"empty"))
    }

    pub(crate) fn maybe_int(&self, name: &str) -> Result<Option<i64>> {
        self.row
            .try_get(name)
            .map_err(|error| corrupt(self.table, name, &error))
    }

    pub(crate) fn int(&self, name: &str) -> Result<i64> {
        self.maybe_int(name)?
            .ok_or_else(|| corrupt(self.table, name, &"empty"))
    }

    pub(crate) fn flag(&self, name: &str) -> Result<bool> {
        Ok(self.int(name)? != 0)
    }

    pub(crate) fn json<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        serde_json::from_str(&self.text(name)?).map_err(|error| corrupt(self.table, name, &error))
    }

    pub(crate) fn maybe_json<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        self.maybe_text(name)?
            .map(|text| serde_json::from_str(&text))
            .transpose()
            .map_err(|error| corrupt(self.table, name, &error))
    }

    pub(crate) fn variant<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        serde_json::from_value(Value::String(self.text(name)?))
            .map_err(|error| corrupt(self.table, name, &error))
    }
}

fn corrupt(table: &'static str, name: &str, detail: &dyn std::fmt::Display) -> StoreError {
    StoreError::Corrupt {
        table,
        detail: format!("`{name}`: {detail}"),
    }
}
