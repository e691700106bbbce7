//! What almost every handler uses: its call and reply, the parts of a request, errors, and the derives of its types.

pub(crate) use axum::Json;
pub(crate) use axum::http::StatusCode;
pub(crate) use axum::response::{IntoResponse, Response};
pub(crate) use sandyard_core::ErrorKind;
pub(crate) use sandyard_service::{ServiceError, ServiceResult};
pub(crate) use serde::{Deserialize, Serialize};
pub(crate) use utoipa::{IntoParams, ToSchema};

pub(crate) use crate::bounds::{self, BoundedInt};
pub(crate) use crate::call::Call;
pub(crate) use crate::error::{ApiError, ApiResult, Reply};
pub(crate) use crate::extract::{Body, OptionalBody, PathName, Query, SandboxName, sandbox_name};
pub(crate) use crate::time::{iso, optional_iso};
