//! Random bytes from the kernel.

use rustix::rand::{GetRandomFlags, getrandom};

use crate::error::AuthError;

/// Gets `N` random bytes.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N], AuthError> {
    let mut buffer = [0; N];
    // Up to 256 bytes come whole, or not at all before the pool is ready (getrandom(2)).
    const { assert!(N <= 256) };
    getrandom(&mut buffer, GetRandomFlags::empty()).map_err(|errno| AuthError::Internal {
        doing: "read random bytes",
        source: Box::new(std::io::Error::from(errno)),
    })?;
    Ok(buffer)
}

/// Gets `N` random bytes as hexadecimal digits.
pub(crate) fn hex_text<const N: usize>() -> Result<String, AuthError> {
    bytes::<N>().map(|bytes| hex(&bytes))
}

/// Writes bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
