//! The tools.

mod going;
mod hands;
mod lists;
mod writing;

use std::sync::Arc;

use tokio::time::Instant;

use super::Turn;
use super::look::{Said, look};
use super::page::Rest;
use super::pipe::Failure;
use crate::call::Call;
use crate::reply::{Answer, Problem};
use crate::tool::Tool;
use crate::workshop::Workshop;

/// All of them, in the order they are shown.
pub(crate) fn tools() -> Vec<Tool> {
    let mut all = going::tools();
    all.extend(lists::tools());
    all.extend(hands::tools());
    all.extend(writing::tools());
    all
}

/// Does the work unless the call is cancelled first.
async fn unless_cancelled(call: Call, work: impl Future<Output = Answer>) -> Answer {
    tokio::select! {
        answer = work => answer,
        () = call.cancelled.cancelled() => Err(Problem::new("the call was cancelled")),
    }
}

/// A turn with the browser for one call.
async fn turn(workshop: &Workshop) -> Result<Turn, Problem> {
    workshop.browser.turn(workshop).await
}

/// Waits for the page after something was done in it, then looks at it.
async fn rest_and_look(workshop: &Arc<Workshop>, turn: &Turn, words: impl Into<String>) -> Answer {
    let rest = rest(turn).await?;
    let said = Said {
        words: words.into(),
        rest: Some(rest),
        more: None,
    };
    look(turn, &workshop.workspace, said).await
}

/// Waits for the page that is looked at after something was done, which may be another than before.
async fn rest(turn: &Turn) -> Result<Rest, Problem> {
    let deadline = Instant::now() + turn.limits.rest;
    let mut tries = 0;
    loop {
        match turn.running()?.page().await?.rest(deadline).await {
            // A page may close itself; there is another to look at then.
            Err(Failure::Closed) if tries < 3 => tries += 1,
            other => return Ok(other?),
        }
    }
}
