//! The MCP server handler.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::http::request::Parts;
use futures_util::FutureExt;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use sandyard_core::ToolSelection;

use super::resources;
use crate::call::{Call, Progress};
use crate::registry::Registry;
use crate::reply::{Problem, Reply};
use crate::tool_state::ToolState;

/// Instructions for models.
const INSTRUCTIONS: &str = "Tools of a Linux sandbox. Paths are absolute or relative to the workspace. Run commands in named shell \
    sessions with Bash; a command that exceeds its timeout keeps running, and BashView shows its output. An error says what went \
    wrong and what to do instead.";

/// Answers MCP requests; cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Handler {
    tool_state: Arc<ToolState>,
    registry: Arc<Registry>,
    /// What the client asked to list when it connected.
    selection: Option<ToolSelection>,
}

impl Handler {
    /// A handler for these tools.
    pub(super) fn new(tool_state: Arc<ToolState>, registry: Arc<Registry>) -> Self {
        Self {
            tool_state,
            registry,
            selection: None,
        }
    }

    /// A handler for a client whose connection began with this query.
    pub(super) fn with_query(mut self, query: Option<&str>) -> Self {
        self.selection = ToolSelection::from_query(query);
        self
    }

    /// State that the tools share.
    pub(super) fn tool_state(&self) -> &Arc<ToolState> {
        &self.tool_state
    }

    /// Calls a tool; none if the tool does not exist.
    pub(super) async fn call(
        &self,
        name: &str,
        arguments: rmcp::model::JsonObject,
        call: Call,
    ) -> Option<Reply> {
        let tool = self.registry.find(name)?;
        let cancelled = call.cancelled.clone();
        let work = tool.call(self.tool_state.clone(), arguments, call);
        let work = AssertUnwindSafe(work).catch_unwind();
        // End work that ignores its cancellation.
        let answer = tokio::select! {
            answer = work => answer.unwrap_or_else(|_| Err(Problem::new(PANICKED))),
            () = async { cancelled.cancelled().await; tokio::time::sleep(CLEANUP_TIMEOUT).await } => Err(Problem::new("the call was cancelled")),
        };
        Some(answer.unwrap_or_else(Reply::from))
    }
}

/// The answer of a tool that panicked. Without it the caller would wait forever.
const PANICKED: &str = "internal error: the tool panicked. Try other arguments or another tool, and report this defect";
/// How long cancelled work may take to clean up.
const CLEANUP_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new(
                "sandyard-tools",
                env!("CARGO_PKG_VERSION"),
            ))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        // Over streamable HTTP every request has the client's URL; over the older transport only the first.
        let query = context
            .extensions
            .get::<Parts>()
            .map(|parts| parts.uri.query());
        let selection = ToolSelection::from_query(query.flatten())
            .or_else(|| self.selection.clone())
            .unwrap_or_else(|| self.tool_state.runtime_config().tools);
        let mut tools = self.registry.all();
        tools.retain(|tool| selection.lists(tool.name(), || tool.is_usable(&self.tool_state)));
        let definitions = tools.iter().map(|tool| tool.definition.clone());
        Ok(ListToolsResult::with_all_items(definitions.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let call = Call {
            cancelled: context.ct.clone(),
            progress: progress(&context),
        };
        let arguments = request.arguments.unwrap_or_default();
        match self.call(&request.name, arguments, call).await {
            Some(reply) => Ok(reply.into_result().into()),
            None => Err(ErrorData::invalid_params(
                format!("unknown tool {}", request.name),
                None,
            )),
        }
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.tool_state.custom.watch(context.peer);
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        resources::list(&self.tool_state, request).await
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(resources::templates(&self.tool_state))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(&self.tool_state, &request.uri).await
    }
}

fn progress(context: &RequestContext<RoleServer>) -> Progress {
    let Some(token) = context.meta.get_progress_token() else {
        return Progress::default();
    };
    let peer = context.peer.clone();
    Progress::new(Arc::new(move |step, message| {
        let (peer, token) = (peer.clone(), token.clone());
        Box::pin(async move {
            #[expect(
                clippy::cast_precision_loss,
                reason = "a call has far fewer than 2^52 steps"
            )]
            let notification =
                ProgressNotificationParam::new(token, step as f64).with_message(message);
            // The client may be gone.
            let _ = peer.notify_progress(notification).await;
        })
    }))
}
