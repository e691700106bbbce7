//! The same bounds in the OpenAPI document.

use utoipa::openapi::schema::{
    AdditionalProperties, AnyOfBuilder, ObjectBuilder, Schema, SchemaType, Type,
};
use utoipa::openapi::{RefOr, schema};

use super::{MAX_PAIRS, MAX_PATH, MAX_SECONDS, MAX_SECRET_NAME, MAX_VALUE, MAX_VOLUME_NAME};

pub(super) fn whole(least: i64, most: i64) -> schema::Object {
    ObjectBuilder::new()
        .schema_type(SchemaType::Type(Type::Integer))
        .minimum(Some(least as f64))
        .maximum(Some(most as f64))
        .build()
}

pub(crate) fn life_seconds_schema() -> schema::Object {
    whole(1, MAX_SECONDS)
}

pub(crate) fn port_schema() -> schema::Object {
    whole(1, 65_535)
}

pub(crate) fn pids_schema() -> schema::Object {
    whole(8, 65_536)
}

/// How many sandboxes a user may have.
pub(crate) fn count_schema() -> schema::Object {
    whole(0, 1_000_000)
}

/// Seconds a key may live.
pub(crate) fn key_life_schema() -> schema::Object {
    whole(1, 3_153_600_000)
}

/// The sandbox's name in a body.
pub(crate) fn sandbox_id_schema() -> schema::Object {
    string(1, 128, None)
}

/// A path in a body.
pub(crate) fn path_schema() -> schema::Object {
    string(1, MAX_PATH, Some(r"^[^\u0000]+$"))
}

pub(crate) fn env_schema() -> schema::Object {
    let value = string(0, MAX_VALUE, Some(r"^[^\u0000]*$"));
    map(r"^[^=\u0000]{1,256}$", value.into())
}

pub(crate) fn secrets_schema() -> schema::Object {
    let name = string(1, MAX_SECRET_NAME, Some("^[A-Za-z0-9_-]+$"));
    map("^[A-Za-z_][A-Za-z0-9_]{0,255}$", name.into())
}

pub(crate) fn volumes_schema() -> schema::Object {
    let name = string(1, MAX_VOLUME_NAME, Some("^[A-Za-z0-9_][A-Za-z0-9_.-]*$"));
    map(r"^/[^\u0000-\u001f\u007f]{1,255}$", name.into())
}

pub(crate) fn metadata_schema() -> schema::Object {
    let value = AnyOfBuilder::new()
        .item(string(0, MAX_VALUE, Some(r"^[^\u0000]*$")))
        .item(ObjectBuilder::new().schema_type(Type::Boolean))
        .item(ObjectBuilder::new().schema_type(Type::Number));
    map(r"^[^\u0000]{1,256}$", value.into())
}

pub(crate) fn memory_limit_schema() -> Schema {
    let forms = AnyOfBuilder::new()
        .item(string(
            2,
            8,
            Some("^([1-9][0-9]{2,3}[mM]|([1-9]|[1-5][0-9])[gG])[bB]?$"),
        ))
        .item(
            ObjectBuilder::new()
                .schema_type(Type::Number)
                .minimum(Some(16.0))
                .maximum(Some(65_536.0)),
        )
        .description(Some("Memory: `2g`, `512m`, or a number of MiB"))
        .build();
    Schema::AnyOf(forms)
}

pub(crate) fn disk_limit_schema() -> schema::Object {
    string(
        2,
        8,
        Some("^([1-9][0-9]{2,3}[mM]|([1-9]|[1-9][0-9])[gG])[bB]?$"),
    )
}

pub(crate) fn cpu_limit_schema() -> Schema {
    let forms = AnyOfBuilder::new()
        .item(string(1, 8, Some("^([1-9]|[1-5][0-9])([.][0-9]{1,3})?$")))
        .item(
            ObjectBuilder::new()
                .schema_type(Type::Number)
                .minimum(Some(0.01))
                .maximum(Some(64.0)),
        )
        .description(Some("Processor cores: `2.0` as text or number"))
        .build();
    Schema::AnyOf(forms)
}

fn string(least: usize, most: usize, pattern: Option<&str>) -> schema::Object {
    ObjectBuilder::new()
        .schema_type(SchemaType::Type(Type::String))
        .min_length(Some(least))
        .max_length(Some(most))
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
        .max_properties(Some(MAX_PAIRS))
        .build()
}
