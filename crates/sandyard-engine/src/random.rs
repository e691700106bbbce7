//! Random bytes, with this crate's errors.

use crate::error::Result;
use crate::sys::OperationExt;

pub(crate) use sandyard_core::random::hex;

/// Gets `N` random bytes.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N]> {
    Ok(sandyard_core::random::bytes().operation("read", "random bytes")?)
}

/// Makes a token that nobody can guess: 40 hexadecimal digits.
pub(crate) fn token() -> Result<String> {
    Ok(hex(&bytes::<20>()?))
}
