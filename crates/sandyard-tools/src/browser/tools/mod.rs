//! The browser tools.

mod elements;
mod input;
mod navigation;
mod text_input;

use std::sync::Arc;

use tokio::time::Instant;

use super::BrowserGuard;
use super::observe::{Summary, observe};
use super::page::LoadState;
use super::pipe::Failure;
use super::program;
use crate::reply::{Answer, Result};
use crate::tool::Tool;
use crate::tool_state::ToolState;

/// All browser tools, in the order they are listed.
pub(crate) fn tools() -> Vec<Tool> {
    let mut all = navigation::tools();
    all.extend(elements::tools());
    all.extend(input::tools());
    all.extend(text_input::tools());
    all.into_iter()
        .map(|tool| tool.usable_if(|_| program::find(|name| std::env::var_os(name)).is_ok()))
        .collect()
}

/// Exclusive use of the browser for one call.
async fn acquire(tool_state: &ToolState) -> Result<BrowserGuard> {
    tool_state.browser.acquire(tool_state).await
}

/// Waits for the page to load after an action, then builds the reply.
async fn observe_after_load(
    tool_state: &Arc<ToolState>,
    browser: &BrowserGuard,
    text: impl Into<String>,
) -> Answer {
    let load_state = wait_for_load(browser).await?;
    let summary = Summary {
        text: text.into(),
        load_state: Some(load_state),
        details: None,
    };
    observe(browser, &tool_state.workspace, summary).await
}

/// Waits for the current page to load after an action, which may have changed the current tab.
async fn wait_for_load(browser: &BrowserGuard) -> Result<LoadState> {
    let deadline = Instant::now() + browser.limits.load;
    let mut retries = 0;
    loop {
        match browser
            .running()?
            .page()
            .await?
            .wait_for_load(deadline)
            .await
        {
            // A page may close itself; then there is another current tab.
            Err(Failure::Closed) if retries < 3 => retries += 1,
            other => return Ok(other?),
        }
    }
}
