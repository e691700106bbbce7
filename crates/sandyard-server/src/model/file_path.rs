//! `path` and `file_path`: two names for one field.

use crate::prelude::*;

/// Path of a request that may use either name.
pub(crate) fn path_of(path: Option<String>, file_path: Option<String>) -> ServiceResult<String> {
    let path = path.or(file_path);
    let path = path.ok_or_else(|| ServiceError::invalid("path", "missing field `path`"))?;
    bounds::path("path", &path)?;
    Ok(path)
}
