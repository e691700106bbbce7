//! Schemas of request fields with bounds: what the checks of this module accept, and what each field means.
//!
//! A field with `schema_with` takes its description from here, since the derive ignores the field's doc comment.

use sandyard_core::bounds::{
    MAX_MAP_ENTRIES, MAX_MAP_VALUE, MAX_PATH, MAX_SECRET_NAME, MAX_VOLUME_NAME,
};
use utoipa::openapi::schema::{
    AdditionalProperties, AnyOfBuilder, ObjectBuilder, Schema, SchemaType, Type,
};
use utoipa::openapi::{RefOr, schema};

use super::MAX_SECONDS;

pub(super) fn integer(min: i64, max: i64) -> schema::Object {
    ObjectBuilder::new()
        .schema_type(SchemaType::Type(Type::Integer))
        .minimum(Some(min as f64))
        .maximum(Some(max as f64))
        .build()
}

pub(crate) fn life_seconds_schema() -> Schema {
    let text = "Idle timeout, in seconds or as text like `30m` or `1h30m`: after this long without activity, `timeout_action` \
                happens. Any request to the sandbox counts as activity. Default: `lifecycle.default_timeout` (3600). The \
                operator may set a lower maximum with `lifecycle.max_timeout`.";
    let span = string(
        2,
        8,
        Some("^([1-9][0-9]{0,3}[sm]|[1-9][0-9]{0,2}h|[1-9][0-9]?d)$"),
    );
    let forms = AnyOfBuilder::new().item(integer(1, MAX_SECONDS)).item(span);
    Schema::AnyOf(forms.description(Some(text)).build())
}

pub(crate) fn port_schema() -> schema::Object {
    described(integer(1, 65_535), "TCP port inside the sandbox.")
}

pub(crate) fn pids_schema() -> schema::Object {
    let text =
        "Maximum number of processes and threads at the same time. Default: `limits.pids` (1024).";
    described(integer(8, 65_536), text)
}

pub(crate) fn count_schema() -> schema::Object {
    let text = "Maximum number of sandboxes that the user may have, paused ones included. 0 means no limit. Default: \
                `limits.sandboxes_per_user`.";
    described(integer(0, 1_000_000), text)
}

pub(crate) fn key_life_schema() -> schema::Object {
    let text = "Lifetime of the key in seconds, up to 100 years. Default: the key does not expire.";
    described(integer(1, 3_153_600_000), text)
}

pub(crate) fn sandbox_id_schema() -> schema::Object {
    let text = "Sandbox to act on: its ID, its alias, or the ID its provider gave it.";
    described(string(1, 128, None), text)
}

pub(crate) fn path_schema() -> schema::Object {
    let text = "Path inside the sandbox. A relative path starts at the user's home directory.";
    described(string(1, MAX_PATH, Some(r"^[^\u0000]+$")), text)
}

pub(crate) fn env_schema() -> schema::Object {
    let text = "Environment variables, name to value. On a sandbox they apply to every command; on a command they are added \
                to the sandbox's and win over them. At most 64 KiB in total.";
    let value = string(0, MAX_MAP_VALUE, Some(r"^[^\u0000]*$"));
    described(map(r"^[^=\u0000]{1,256}$", value.into()), text)
}

pub(crate) fn secrets_schema() -> schema::Object {
    let text = "Secrets that the sandbox uses without seeing them: environment variable to name of the secret. The variable \
                holds a placeholder, which the egress gateway replaces in requests to the secret's hosts.";
    let name = string(1, MAX_SECRET_NAME, Some("^[A-Za-z0-9_-]+$"));
    described(map("^[A-Za-z_][A-Za-z0-9_]{0,255}$", name.into()), text)
}

pub(crate) fn volumes_schema() -> schema::Object {
    let text = "Volumes to mount: absolute path inside the sandbox to name or ID of the volume.";
    let name = string(1, MAX_VOLUME_NAME, Some("^[A-Za-z0-9_][A-Za-z0-9_.-]*$"));
    described(map(r"^/[^\u0000-\u001f\u007f]{1,255}$", name.into()), text)
}

pub(crate) fn metadata_schema() -> schema::Object {
    let text = "Your own labels for the sandbox, name to value, for example to filter lists by. Numbers and booleans are \
                stored as text. At most 64 KiB in total.";
    described(map(r"^[^\u0000]{1,256}$", metadata_value().into()), text)
}

pub(crate) fn metadata_changes_schema() -> schema::Object {
    let text = "Labels to change, name to value. The value null removes a label; labels that are not named stay. At most \
                64 KiB in total.";
    let value = metadata_value().item(ObjectBuilder::new().schema_type(Type::Null));
    described(map(r"^[^\u0000]{1,256}$", value.into()), text)
}

fn metadata_value() -> AnyOfBuilder {
    AnyOfBuilder::new()
        .item(string(0, MAX_MAP_VALUE, Some(r"^[^\u0000]*$")))
        .item(ObjectBuilder::new().schema_type(Type::Boolean))
        .item(ObjectBuilder::new().schema_type(Type::Number))
}

pub(crate) fn memory_limit_schema() -> Schema {
    let text = "Memory limit (also accepted as `memory`): a size like `512m` or `2g`, or a number of MiB. Default: `limits.memory` (2 GiB). The operator \
                may set a lower maximum with `limits.max_memory`.";
    let size = "^([1-9][0-9]{2,3}[mM]|([1-9]|[1-5][0-9])[gG])[bB]?$";
    text_or_number(string(2, 8, Some(size)), 16.0, 65_536.0, text)
}

pub(crate) fn disk_limit_schema() -> schema::Object {
    let text = "Disk space that the sandbox may write (also accepted as `disk`) on top of its template, as a size like `512m` or `4g`. Default: \
                `limits.disk` (4 GiB).";
    let size = "^([1-9][0-9]{2,3}[mM]|([1-9]|[1-9][0-9])[gG])[bB]?$";
    described(string(2, 8, Some(size)), text)
}

pub(crate) fn cpu_limit_schema() -> Schema {
    let text = "CPU limit in cores (also accepted as `cpu`), as a number or as text like `2.0`. Default: `limits.cpu` (2). The operator may set a \
                lower maximum with `limits.max_cpu`.";
    let cores = string(1, 8, Some("^([1-9]|[1-5][0-9])([.][0-9]{1,3})?$"));
    text_or_number(cores, 0.01, 64.0, text)
}

fn text_or_number(form: schema::Object, min: f64, max: f64, description: &str) -> Schema {
    let number = ObjectBuilder::new()
        .schema_type(Type::Number)
        .minimum(Some(min))
        .maximum(Some(max));
    let forms = AnyOfBuilder::new().item(form).item(number);
    Schema::AnyOf(forms.description(Some(description)).build())
}

fn described(mut schema: schema::Object, description: &str) -> schema::Object {
    schema.description = Some(description.to_owned());
    schema
}

fn string(min: usize, max: usize, pattern: Option<&str>) -> schema::Object {
    ObjectBuilder::new()
        .schema_type(SchemaType::Type(Type::String))
        .min_length(Some(min))
        .max_length(Some(max))
        .pattern(pattern)
        .build()
}

fn map(names: &str, value: RefOr<Schema>) -> schema::Object {
    let names = ObjectBuilder::new()
        .schema_type(SchemaType::Type(Type::String))
        .pattern(Some(names))
        .build();
    ObjectBuilder::new()
        .schema_type(SchemaType::Type(Type::Object))
        .property_names(Some(Schema::Object(names)))
        .additional_properties(Some(AdditionalProperties::RefOr(value)))
        .max_properties(Some(MAX_MAP_ENTRIES))
        .build()
}
