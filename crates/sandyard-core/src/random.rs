//! Bytes that nobody can guess, and how bytes are written.

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// Gets `N` random bytes of the kernel's, at most 256.
///
/// # Errors
///
/// When the kernel has none.
pub fn bytes<const N: usize>() -> io::Result<[u8; N]> {
    // Up to 256 bytes come at once, or none before the kernel's generator is seeded (getrandom(2)).
    const { assert!(N <= 256) };
    let mut bytes = [0; N];
    match getrandom(&mut bytes[..], GetRandomFlags::empty()) {
        Ok(count) if count == N => Ok(bytes),
        Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
        Err(error) => Err(error.into()),
    }
}

/// Gets `N` random bytes as text: twice as many hexadecimal digits.
///
/// # Errors
///
/// When the kernel has none.
pub fn text<const N: usize>() -> io::Result<String> {
    bytes::<N>().map(|bytes| hex(&bytes))
}

/// Writes bytes as hexadecimal digits, in lower case.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_in_order_with_two_digits_each() {
        assert_eq!(hex(&[0, 1, 0x0a, 0x7f, 0xff]), "00010a7fff");
        assert_eq!(hex(&[]), "");
    }

    #[test]
    fn random_text_is_as_long_as_said_and_never_the_same() {
        let (one, other) = (text::<20>().expect("bytes"), text::<20>().expect("bytes"));
        assert_ne!(one, other);
        assert_eq!(one.len(), 40);
    }
}
