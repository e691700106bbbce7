//! Contents of files over plain HTTP.

mod get;
mod gzip;
mod multipart;
mod post;
mod target;

pub(crate) use get::get;
pub(crate) use post::post;

use http::StatusCode;
use sandyard_wire::{Code, ConnectError};

use crate::call::{Response, plain_error};

/// The plain HTTP answer for an error.
fn reply_of(error: ConnectError) -> Response {
    let status = match error.code {
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::InvalidArgument | Code::FailedPrecondition | Code::Canceled => {
            StatusCode::BAD_REQUEST
        }
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::DeadlineExceeded => StatusCode::REQUEST_TIMEOUT,
        Code::ResourceExhausted => StatusCode::INSUFFICIENT_STORAGE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    plain_error(status, error.message)
}
