//! Says of request bodies that they have no other fields: the server refuses unknown ones.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::errors::Dialect;

/// Closes the schemas that only bodies of requests use. A response may have more fields in a later version, so what both use stays open.
pub(super) fn close_requests(paths: &Map<String, Value>, schemas: &mut Map<String, Value>) {
    let (mut requests, mut others) = (BTreeSet::new(), BTreeSet::new());
    for schema in schemas.values() {
        collect(schema, &mut others);
    }
    for (path, methods) in paths {
        let operations = methods.as_object().into_iter().flat_map(Map::values);
        for operation in operations {
            collect(&operation["responses"], &mut others);
            let names = match Dialect::of(path) {
                Dialect::E2b => &mut others,
                _ => &mut requests,
            };
            collect(&operation["requestBody"], names);
        }
    }
    for name in requests.difference(&others) {
        let schema = &mut schemas[name.as_str()];
        if schema.get("properties").is_some() && schema.get("allOf").is_none() {
            schema["additionalProperties"] = json!(false);
        }
    }
}

/// Collects the names of the schemas that a description refers to.
fn collect(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            let reference = fields.get("$ref").and_then(Value::as_str);
            let name = reference.and_then(|text| text.strip_prefix("#/components/schemas/"));
            names.extend(name.map(str::to_owned));
            fields.values().for_each(|field| collect(field, names));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, names)),
        _ => {}
    }
}
