//! Random bytes from the kernel.

use rustix::rand::{GetRandomFlags, getrandom};

use crate::error::Result;
use crate::sys::Doing;

/// Gets `N` random bytes.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N]> {
    let mut buffer = [0; N];
    // Up to 256 bytes come whole, or not at all before the pool is ready (getrandom(2)).
    const { assert!(N <= 256) };
    getrandom(&mut buffer, GetRandomFlags::empty()).doing("read", "random bytes")?;
    Ok(buffer)
}

/// Makes a token that nobody can guess: 40 hexadecimal digits.
pub(crate) fn token() -> Result<String> {
    Ok(hex(&bytes::<20>()?))
}

/// Writes bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
