//! Definition of tools.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use rmcp::model::{JsonObject, ToolAnnotations};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::call::Call;
use crate::files::blocking::blocking;
use crate::reply::{Answer, Problem, Result};
use crate::tool_state::ToolState;
use crate::workspace::Workspace;

/// A tool: its definition for callers, and its function.
#[derive(Clone)]
pub(crate) struct Tool {
    /// Name, schemas, description and annotations.
    pub(crate) definition: rmcp::model::Tool,
    work: Arc<Work>,
    /// Whether it can work in this sandbox.
    is_usable: fn(&ToolState) -> bool,
}

type Work = dyn Fn(Arc<ToolState>, JsonObject, Call) -> Pin<Box<dyn Future<Output = Answer> + Send>>
    + Send
    + Sync;

/// The effect of a tool, for clients that ask people before they call it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Effect {
    /// Reads only.
    Reads,
    /// Reads from outside of the sandbox.
    ReadsExternal,
    /// Adds something, or changes something that can be restored.
    Adds,
    /// May overwrite or end something.
    Changes,
    /// May overwrite or end something, and accesses the outside of the sandbox.
    ChangesExternal,
}

impl Effect {
    fn annotations(self) -> ToolAnnotations {
        ToolAnnotations::new()
            .read_only(matches!(self, Self::Reads | Self::ReadsExternal))
            .destructive(matches!(self, Self::Changes | Self::ChangesExternal))
            .open_world(matches!(self, Self::ReadsExternal | Self::ChangesExternal))
    }
}

/// Creates a tool. Its work watches [`Call::cancelled`] itself if it can take long.
///
/// The schema comes from the type of the arguments; its documentation comments are the descriptions of the parameters.
pub(crate) fn tool<A, W, F>(name: &'static str, effect: Effect, work: W) -> Tool
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    W: Fn(Arc<ToolState>, A, Call) -> F + Send + Sync + 'static,
    F: Future<Output = Answer> + Send + 'static,
{
    let definition = rmcp::model::Tool::new(name, "", Arc::new(schema_of::<A>()))
        .with_annotations(effect.annotations());
    let work = Arc::new(work);
    Tool {
        definition,
        work: Arc::new(move |tool_state, arguments, call| {
            let work = work.clone();
            Box::pin(async move {
                let arguments: A = parse(name, arguments)?;
                work(tool_state, arguments, call).await
            })
        }),
        is_usable: |_| true,
    }
}

/// Creates a tool whose work is dropped when the call is cancelled.
pub(crate) fn cancellable<A, W, F>(name: &'static str, effect: Effect, work: W) -> Tool
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    W: Fn(Arc<ToolState>, A) -> F + Send + Sync + 'static,
    F: Future<Output = Answer> + Send + 'static,
{
    tool(name, effect, move |tool_state, arguments, call: Call| {
        let work = work(tool_state, arguments);
        async move { call.unless_cancelled(work).await }
    })
}

/// Creates a tool whose work uses files of the workspace, on a thread that may block.
pub(crate) fn workspace_tool<A, W>(name: &'static str, effect: Effect, work: W) -> Tool
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    W: Fn(&Workspace, A) -> Answer + Copy + Send + Sync + 'static,
{
    tool(name, effect, move |tool_state, arguments, _| {
        blocking(move || work(&tool_state.workspace, arguments))
    })
}

impl Tool {
    /// Sets the title, for people.
    pub(crate) fn title(mut self, title: &'static str) -> Self {
        self.definition.title = Some(title.to_owned());
        if let Some(annotations) = &mut self.definition.annotations {
            annotations.title = Some(title.to_owned());
        }
        self
    }

    /// Sets the description, which is written for models.
    pub(crate) fn description(mut self, description: &'static str) -> Self {
        self.definition.description = Some(description.into());
        self
    }

    /// A tool of another server, with its own definition.
    pub(crate) fn raw<W, F>(definition: rmcp::model::Tool, work: W) -> Self
    where
        W: Fn(JsonObject, Call) -> F + Send + Sync + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        Self {
            definition,
            work: Arc::new(move |_, arguments, call| Box::pin(work(arguments, call))),
            is_usable: |_| true,
        }
    }

    /// The same tool with another name.
    pub(crate) fn renamed(&self, name: &'static str) -> Self {
        let mut other = self.clone();
        other.definition.name = name.into();
        other
    }

    /// Adds the schema of the structured result.
    pub(crate) fn with_output<T: JsonSchema>(mut self) -> Self {
        self.definition.output_schema = Some(Arc::new(schema_of::<T>()));
        self
    }

    /// Sets what tells whether the tool can work in a sandbox. Where it cannot, it is not listed, since each tool in a list costs a
    /// model about a hundred tokens.
    pub(crate) fn usable_if(mut self, is_usable: fn(&ToolState) -> bool) -> Self {
        self.is_usable = is_usable;
        self
    }

    /// Whether the tool can work in this sandbox now.
    pub(crate) fn is_usable(&self, tool_state: &ToolState) -> bool {
        (self.is_usable)(tool_state)
    }

    /// The tool's name.
    pub(crate) fn name(&self) -> &str {
        &self.definition.name
    }

    /// Calls the tool.
    pub(crate) async fn call(
        &self,
        tool_state: Arc<ToolState>,
        arguments: JsonObject,
        call: Call,
    ) -> Answer {
        (self.work)(tool_state, arguments, call).await
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tool({})", self.definition.name)
    }
}

/// Arguments of tools without parameters.
#[derive(serde::Deserialize, JsonSchema)]
pub(crate) struct NoArguments {}

/// The schema of a type, with all subschemas inlined, which models read best.
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

fn parse<A: DeserializeOwned>(name: &str, arguments: JsonObject) -> Result<A> {
    serde_json::from_value(Value::Object(arguments))
        .map_err(|error| Problem::new(format!("invalid arguments of {name}: {error}")))
}
