//! `POST /sandboxes/create-directory`, by query or JSON.

use sandyard_agent_client::wire::Code;
use sandyard_agent_client::wire::filesystem::FileType;

use crate::model::Done;
use crate::prelude::*;

/// Request to create a directory. Fields that the query lacks may be in the body.
#[derive(Default, Deserialize, IntoParams, ToSchema)]
#[into_params(parameter_in = Query)]
pub(crate) struct CreateDirectory {
    /// Sandbox to act on: its ID, its alias, or the ID its provider gave it.
    #[param(required = true, value_type = String, min_length = 1, max_length = 128)]
    #[schema(min_length = 1, max_length = 128)]
    sandbox_id: Option<String>,
    /// Path of the directory. A relative path starts at the user's home directory.
    #[param(required = true, value_type = String, min_length = 1, max_length = 4096, pattern = r"^[^\u0000]+$")]
    #[schema(min_length = 1, max_length = 4096, pattern = r"^[^\u0000]+$")]
    directory_path: Option<String>,
    /// Whether it is a success if the directory exists already (default false).
    exist_ok: Option<bool>,
}

/// Create a directory
///
/// Creates a directory with its missing parents. The fields may be sent in the query or in a JSON body.
#[utoipa::path(
    post, path = "/sandboxes/create-directory", tag = "files", params(CreateDirectory),
    request_body = Option<CreateDirectory>,
    responses((status = 200, description = "Directory created, or it existed already and `exist_ok` was set.", body = Done))
)]
pub(crate) async fn create_directory(
    call: Call,
    Query(query): Query<CreateDirectory>,
    OptionalBody(body): OptionalBody<CreateDirectory>,
) -> Reply<Done> {
    let sandbox_id = query.sandbox_id.or(body.sandbox_id);
    let sandbox_id = sandbox_id.ok_or_else(|| missing("sandbox_id"))?;
    let name = sandbox_name(&sandbox_id)?;
    let path = query.directory_path.or(body.directory_path);
    let path = path.ok_or_else(|| missing("directory_path"))?;
    bounds::path("directory_path", &path)?;
    let is_fine_to_exist = query.exist_ok.or(body.exist_ok).unwrap_or(false);
    let live = call.live(name).await?;
    match live.agent.make_dir(&path).await {
        Ok(entry) => Ok(Json(Done::new(format!("{} created", entry.path)))),
        // Agents return the second kind if the path is a file.
        Err(error)
            if matches!(
                error.code(),
                Some(Code::AlreadyExists | Code::InvalidArgument)
            ) =>
        {
            let Ok(entry) = live.agent.stat(&path).await else {
                return Err(error.into());
            };
            if is_fine_to_exist && entry.r#type == FileType::Directory {
                return Ok(Json(Done::new(format!("{} exists already", entry.path))));
            }
            Err(
                ApiError::new(ErrorKind::Conflict, format!("`{path}` exists already"))
                    .hint("send `\"exist_ok\": true` if that is fine"),
            )
        }
        Err(error) => Err(error.into()),
    }
}

fn missing(field: &'static str) -> ServiceError {
    ServiceError::invalid(field, format!("missing field `{field}`"))
}
