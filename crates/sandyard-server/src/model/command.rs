//! The command to run, as several dialects read it.

use sandyard_service::{Command, ServiceError};
use serde::Deserialize;
use utoipa::openapi::schema::{
    AnyOfBuilder, Array, ArrayBuilder, Object, ObjectBuilder, Schema, Type,
};

use crate::bounds::{self, MAX_ARGUMENT};

/// Most arguments of a command.
const MAX_ARGUMENTS: usize = 4096;

/// Most bytes that can be asked for of each stream of a command's output.
pub(crate) const MAX_OUTPUT: usize = 8 << 20;

/// What to run: a text for `bash -lc`, or a program and its arguments.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum CommandWords {
    Shell(String),
    Argv(Vec<String>),
}

impl CommandWords {
    pub(crate) fn into_command(self) -> Result<Command, ServiceError> {
        match self {
            Self::Shell(text) => {
                bounds::text("command", &text, 1, MAX_ARGUMENT)?;
                Ok(Command::Shell(text))
            }
            Self::Argv(words) => argv(words).map(Command::Argv),
        }
    }
}

/// Checks a program and its arguments.
pub(crate) fn argv(words: Vec<String>) -> Result<Vec<String>, ServiceError> {
    if !(1..=MAX_ARGUMENTS).contains(&words.len()) || words[0].is_empty() {
        return Err(ServiceError::invalid(
            "command",
            format!("`command` names a program and up to {MAX_ARGUMENTS} arguments"),
        ));
    }
    for word in &words {
        bounds::text("command", word, 0, MAX_ARGUMENT)?;
    }
    Ok(words)
}

/// The schema of a program and its arguments.
pub(crate) fn argv_schema() -> Array {
    ArrayBuilder::new()
        .items(argument(1))
        .min_items(Some(1))
        .max_items(Some(MAX_ARGUMENTS))
        .build()
}

pub(crate) fn command_schema() -> Schema {
    let forms = AnyOfBuilder::new()
        .item(argument(1))
        .item(argv_schema())
        .description(Some(
            "A text for `bash -lc`, or a program and its arguments",
        ))
        .build();
    Schema::AnyOf(forms)
}

fn argument(least: usize) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(least))
        .max_length(Some(MAX_ARGUMENT))
        .pattern(Some(r"^[^\u0000]+$"))
        .build()
}
