//! `POST /sandboxes/create-directory`, by query or JSON.

use axum::Json;
use axum::extract::State;
use sandyard_agent_client::wire::Code;
use sandyard_agent_client::wire::filesystem::FileType;
use sandyard_core::ErrorKind;
use sandyard_service::ServiceError;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::access::Authenticated;
use crate::app::App;
use crate::bounds;
use crate::error::ApiError;
use crate::extract::{OptionalBody, Query, sandbox_name};
use crate::model::Done;

/// A folder to be made. What the query does not say may be in the body instead.
#[derive(Default, Deserialize, IntoParams, ToSchema)]
#[into_params(parameter_in = Query)]
pub(crate) struct CreateDirectory {
    /// The sandbox: its id, its provider's id or its alias.
    #[param(required = true, value_type = String, min_length = 1, max_length = 128)]
    #[schema(min_length = 1, max_length = 128)]
    sandbox_id: Option<String>,
    /// Where; relative paths begin at the user's home.
    #[param(required = true, value_type = String, min_length = 1, max_length = 4096, pattern = r"^[^\u0000]+$")]
    #[schema(min_length = 1, max_length = 4096, pattern = r"^[^\u0000]+$")]
    directory_path: Option<String>,
    /// Whether it is fine that it exists already.
    exist_ok: Option<bool>,
}

/// Makes a folder, with those above it.
#[utoipa::path(
    post, path = "/sandboxes/create-directory", operation_id = "create_directory", tag = "files",
    params(CreateDirectory), request_body = Option<CreateDirectory>,
    responses((status = 200, description = "It is there.", body = Done))
)]
pub(crate) async fn create_directory(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    Query(query): Query<CreateDirectory>,
    OptionalBody(body): OptionalBody<Option<CreateDirectory>>,
) -> Result<Json<Done>, ApiError> {
    let body = body.unwrap_or_default();
    let sandbox_id = query.sandbox_id.or(body.sandbox_id);
    let sandbox_id = sandbox_id.ok_or_else(|| missing("sandbox_id"))?;
    let name = sandbox_name(&sandbox_id)?;
    let path = query.directory_path.or(body.directory_path);
    let path = path.ok_or_else(|| missing("directory_path"))?;
    bounds::path("directory_path", &path)?;
    let is_fine_to_exist = query.exist_ok.or(body.exist_ok).unwrap_or(false);
    let live = app.service().live(&caller, name).await?;
    match live.agent.make_dir(&path).await {
        Ok(entry) => Ok(Json(Done::new(format!("{} created", entry.path)))),
        // The second is what agents say when it is a file that is there.
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
