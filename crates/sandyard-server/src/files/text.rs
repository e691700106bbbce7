//! Text files, read whole for responses in JSON.

use sandyard_agent_client::{AgentClient, ClientError};
use sandyard_service::MemoryHold;

use crate::call::Call;
use crate::error::{ApiError, ApiResult};
use crate::extract::reserve;

/// A whole file, and the hold on the memory budget for it.
pub(crate) struct WholeFile {
    pub(crate) content: Vec<u8>,
    pub(crate) memory: MemoryHold,
}

/// Reads a file of at most `max` bytes; none if it is longer.
pub(crate) async fn read_whole(
    call: &Call,
    agent: &AgentClient,
    path: &str,
    max: usize,
) -> ApiResult<Option<WholeFile>> {
    let memory = call.service().memory().hold(&call.caller.name);
    let mut file = agent.read_file(path).await?;
    let announced = file.size().and_then(|size| usize::try_from(size).ok());
    let announced = announced.unwrap_or(0);
    if announced > max {
        return Ok(None);
    }
    let mut content = Vec::new();
    // All memory at once: two readers that each wait for the other's memory would wait forever.
    reserve(&mut content, &memory, announced).await?;
    while let Some(chunk) = file.next().await {
        let chunk = chunk.map_err(|error: ClientError| ApiError::from(error))?;
        let length = content.len() + chunk.len();
        if length > max {
            return Ok(None);
        }
        if length > content.capacity() {
            let capacity = length.max(content.capacity() * 2).min(max);
            reserve(&mut content, &memory, capacity).await?;
        }
        content.extend_from_slice(&chunk);
    }
    Ok(Some(WholeFile { content, memory }))
}
