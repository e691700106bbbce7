//! `path` and `file_path`: two names for one field.

use crate::prelude::*;

/// Path of a request that may use either name.
pub(crate) fn path_of(
    path: Option<String>,
    file_path: Option<String>,
) -> Result<String, ServiceError> {
    let path = path.or(file_path).ok_or_else(|| {
        let mut error = ServiceError::new(ErrorKind::Invalid, "missing field `path`");
        error.field = Some("path");
        error
    })?;
    bounds::path("path", &path)?;
    Ok(path)
}
