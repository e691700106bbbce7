//! What a tool is.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use rmcp::model::{JsonObject, ToolAnnotations};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::call::Call;
use crate::reply::{Answer, Problem};
use crate::workshop::Workshop;

/// A tool: what callers are told of it, and its work.
#[derive(Clone)]
pub(crate) struct Tool {
    /// Everything callers are told.
    pub(crate) told: rmcp::model::Tool,
    work: Arc<Work>,
}

type Work = dyn Fn(Arc<Workshop>, JsonObject, Call) -> Pin<Box<dyn Future<Output = Answer> + Send>>
    + Send
    + Sync;

/// What a tool does to the world, for clients that ask people before they call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Effect {
    /// Looks only.
    Looks,
    /// Looks at something outside of the sandbox.
    LooksOutside,
    /// Changes something that can be had back, or adds.
    Adds,
    /// May overwrite or end something.
    Changes,
    /// The same, and reaches outside of the sandbox.
    ChangesOutside,
}

impl Effect {
    fn annotations(self, title: &str) -> ToolAnnotations {
        let looks = matches!(self, Self::Looks | Self::LooksOutside);
        let destroys = matches!(self, Self::Changes | Self::ChangesOutside);
        let outside = matches!(self, Self::LooksOutside | Self::ChangesOutside);
        ToolAnnotations::with_title(title)
            .read_only(looks)
            .destructive(destroys)
            .open_world(outside)
    }
}

/// Makes a tool: `name` and `title`, a `description` made for models, what it does to the world, and its work.
///
/// The arguments' type gives the schema; its documentation comments are the descriptions of the parameters.
pub(crate) fn tool<A, W, F>(
    name: &'static str,
    title: &'static str,
    effect: Effect,
    description: &'static str,
    work: W,
) -> Tool
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    W: Fn(Arc<Workshop>, A, Call) -> F + Send + Sync + 'static,
    F: Future<Output = Answer> + Send + 'static,
{
    let told = rmcp::model::Tool::new(name, description, Arc::new(schema_of::<A>()))
        .with_title(title)
        .with_annotations(effect.annotations(title));
    let work = Arc::new(work);
    Tool {
        told,
        work: Arc::new(move |workshop, arguments, call| {
            let work = work.clone();
            Box::pin(async move {
                let arguments: A = read(name, arguments)?;
                work(workshop, arguments, call).await
            })
        }),
    }
}

impl Tool {
    /// A tool whose schema somebody else made.
    pub(crate) fn raw<W, F>(told: rmcp::model::Tool, work: W) -> Self
    where
        W: Fn(JsonObject, Call) -> F + Send + Sync + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        Self {
            told,
            work: Arc::new(move |_, arguments, call| Box::pin(work(arguments, call))),
        }
    }

    /// The same tool by another name.
    pub(crate) fn named(&self, name: &'static str) -> Self {
        let mut other = self.clone();
        other.told.name = name.into();
        other
    }

    /// The same with a schema of what it answers for programs.
    pub(crate) fn answers<T: JsonSchema>(mut self) -> Self {
        self.told.output_schema = Some(Arc::new(schema_of::<T>()));
        self
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.told.name
    }

    /// Does its work.
    pub(crate) async fn call(
        &self,
        workshop: Arc<Workshop>,
        arguments: JsonObject,
        call: Call,
    ) -> Answer {
        (self.work)(workshop, arguments, call).await
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tool({})", self.told.name)
    }
}

/// For tools without parameters.
#[derive(serde::Deserialize, JsonSchema)]
pub(crate) struct Nothing {}

/// The schema as models read it best: everything in one place.
fn schema_of<T: JsonSchema>() -> JsonObject {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let Value::Object(mut object) = schema.to_value() else {
        return JsonObject::new();
    };
    object.remove("title");
    object.entry("type").or_insert_with(|| "object".into());
    object
        .entry("properties")
        .or_insert_with(|| Value::Object(JsonObject::new()));
    object
}

fn read<A: DeserializeOwned>(name: &str, arguments: JsonObject) -> Result<A, Problem> {
    serde_json::from_value(Value::Object(arguments))
        .map_err(|error| Problem::new(format!("the arguments of {name} are wrong: {error}")))
}
