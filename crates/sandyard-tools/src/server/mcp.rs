//! The tools as MCP knows them.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};

use super::resources;
use crate::call::{Call, Progress};
use crate::registry::Registry;
use crate::reply::{Problem, Reply};
use crate::workshop::Workshop;

/// What a model is told about all of this.
const INSTRUCTIONS: &str = "Tools of a Linux sandbox. Paths are absolute or relative to the workspace. Start shells with BashInit and \
    run commands in them with Bash; a command that takes longer than its time-out goes on and can be looked at with BashView. \
    A tool that fails says why and what to do instead.";

/// Answers MCP requests; cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Handler {
    workshop: Arc<Workshop>,
    registry: Arc<Registry>,
}

impl Handler {
    /// For these tools.
    pub(super) fn new(workshop: Arc<Workshop>, registry: Arc<Registry>) -> Self {
        Self { workshop, registry }
    }

    /// What the tools share.
    pub(super) fn workshop(&self) -> &Arc<Workshop> {
        &self.workshop
    }

    /// Calls a tool; none if there is no such tool.
    pub(super) async fn call(
        &self,
        name: &str,
        arguments: rmcp::model::JsonObject,
        call: Call,
    ) -> Option<Reply> {
        let tool = self.registry.find(name)?;
        let cancelled = call.cancelled.clone();
        let work = tool.call(self.workshop.clone(), arguments, call);
        let work = AssertUnwindSafe(work).catch_unwind();
        // Work that does not look at its cancellation ends here all the same.
        let answer = tokio::select! {
            answer = work => answer.unwrap_or_else(|_| Err(Problem::new(BROKEN))),
            () = async { cancelled.cancelled().await; tokio::time::sleep(GRACE).await } => Err(Problem::new("the call was cancelled")),
        };
        Some(answer.unwrap_or_else(Reply::from))
    }
}

/// What is said of a tool that panicked; without an answer its caller would wait for ever.
const BROKEN: &str =
    "the tool broke, which is a defect of the tool server: try again in another way, and report it";
/// How long cancelled work may take to tidy up.
const GRACE: std::time::Duration = std::time::Duration::from_secs(5);

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
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self
            .registry
            .all()
            .iter()
            .map(|tool| tool.told.clone())
            .collect();
        Ok(ListToolsResult::with_all_items(tools))
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
                format!("there is no tool {}", request.name),
                None,
            )),
        }
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.workshop.custom.watch(context.peer);
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        resources::list(&self.workshop, request).await
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(resources::templates(&self.workshop))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(&self.workshop, &request.uri).await
    }
}

fn progress(context: &RequestContext<RoleServer>) -> Progress {
    let Some(token) = context.meta.get_progress_token() else {
        return Progress::default();
    };
    let peer = context.peer.clone();
    Progress::to(Arc::new(move |step, message| {
        let (peer, token) = (peer.clone(), token.clone());
        Box::pin(async move {
            #[expect(
                clippy::cast_precision_loss,
                reason = "nobody lives to see that many steps"
            )]
            let told = ProgressNotificationParam::new(token, step as f64).with_message(message);
            // Whoever does not listen any more is not told.
            let _ = peer.notify_progress(told).await;
        })
    }))
}
