//! Random text, with this crate's errors.

use crate::error::{AuthError, Result};

pub(crate) use sandyard_core::random::hex;

/// Gets `N` random bytes as hexadecimal digits.
pub(crate) fn hex_text<const N: usize>() -> Result<String> {
    sandyard_core::random::text::<N>().map_err(|error| AuthError::Internal {
        action: "read random bytes",
        source: Box::new(error),
    })
}
