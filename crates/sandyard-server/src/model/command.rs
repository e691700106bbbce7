//! The command to run, as several dialects read it.

use std::collections::BTreeMap;
use std::time::Duration;

use sandyard_service::{Command, RunRequest, ServiceError, ServiceResult};
use serde::Deserialize;
use utoipa::openapi::schema::{
    AnyOfBuilder, Array, ArrayBuilder, Object, ObjectBuilder, Schema, Type,
};

use crate::bounds::{self, MAX_ARGUMENT};

/// Maximum number of arguments of a command, program included.
const MAX_ARGUMENTS: usize = 4096;

/// Largest `max_output_bytes` of a request.
pub(crate) const MAX_OUTPUT: usize = 8 << 20;

/// Command of a request: text for `bash -lc`, or a program and its arguments.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum CommandText {
    Shell(String),
    Argv(Vec<String>),
}

impl CommandText {
    pub(crate) fn into_command(self) -> ServiceResult<Command> {
        match self {
            Self::Shell(text) => {
                bounds::text("command", &text, 1, MAX_ARGUMENT)?;
                Ok(Command::Shell(text))
            }
            Self::Argv(arguments) => argv(arguments).map(Command::Argv),
        }
    }
}

/// A command with what a request may say about it, checked.
pub(crate) fn run_request(
    command: Command,
    cwd: Option<String>,
    env: Option<BTreeMap<String, String>>,
    user: Option<String>,
    timeout: Option<f64>,
) -> ServiceResult<RunRequest> {
    bounds::optional_text("cwd", cwd.as_deref(), 1, bounds::MAX_PATH)?;
    bounds::optional_text("user", user.as_deref(), 1, 64)?;
    let env = env.unwrap_or_default();
    bounds::env("env", &env)?;
    timeout.map_or(Ok(()), bounds::command_seconds)?;
    Ok(RunRequest {
        cwd,
        env,
        user,
        timeout: timeout.map(Duration::from_secs_f64),
        ..RunRequest::new(command)
    })
}

/// Checks a program and its arguments.
pub(crate) fn argv(arguments: Vec<String>) -> ServiceResult<Vec<String>> {
    if !(1..=MAX_ARGUMENTS).contains(&arguments.len()) || arguments[0].is_empty() {
        return Err(ServiceError::invalid(
            "command",
            format!(
                "`command` must list a program and its arguments, 1 to {MAX_ARGUMENTS} in total"
            ),
        ));
    }
    for argument in &arguments {
        bounds::text("command", argument, 0, MAX_ARGUMENT)?;
    }
    Ok(arguments)
}

/// Schema of a program and its arguments.
pub(crate) fn argv_schema() -> Array {
    ArrayBuilder::new()
        .items(argument(1))
        .min_items(Some(1))
        .max_items(Some(MAX_ARGUMENTS))
        .description(Some("Program and its arguments, 1 to 4096 in total."))
        .build()
}

pub(crate) fn command_schema() -> Schema {
    let forms = AnyOfBuilder::new()
        .item(argument(1))
        .item(argv_schema())
        .description(Some(
            "Command to run: text for `bash -lc`, or a list of a program and its arguments.",
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
