//! Writes a text file.

use crate::model::Done;
use crate::model::file_path::path_of;
use crate::prelude::*;

/// Request to write a text file. One of `path` and `file_path` is required.
#[derive(Deserialize, ToSchema)]
pub(crate) struct WriteFile {
    /// Sandbox that holds the file.
    #[schema(schema_with = bounds::sandbox_id_schema)]
    sandbox_id: String,
    /// Path of the file.
    #[schema(schema_with = bounds::path_schema)]
    path: Option<String>,
    /// Alias of `path`.
    #[schema(schema_with = bounds::path_schema)]
    file_path: Option<String>,
    /// New content of the file as text; may be empty.
    #[schema(required = true, value_type = String)]
    content: Option<String>,
}

/// Writes the file, with the folders above it.
pub(crate) async fn write_file(call: &Call, request: WriteFile) -> ApiResult<Done> {
    let name = sandbox_name(&request.sandbox_id)?;
    let path = path_of(request.path, request.file_path)?;
    let Some(content) = request.content else {
        return Err(
            ApiError::new(ErrorKind::BadRequest, "missing field `content`")
                .hint("an empty file is `\"content\": \"\"`")
                .field(Some("content".to_owned())),
        );
    };
    let live = call.live(name).await?;
    let bytes = content.len();
    let written = live.agent.write_file(&path, content).await?;
    Ok(Done::new(format!(
        "{bytes} bytes written to {}",
        written.path
    )))
}
