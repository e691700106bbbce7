//! A key of 32 bytes.

use std::fmt;

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

use super::Value;

/// How many bytes it has.
const BYTES: usize = 32;

/// 32 bytes that seal something. Never shows itself.
#[derive(Clone, PartialEq, Eq)]
pub struct SealingKey([u8; BYTES]);

impl SealingKey {
    /// Reads 64 hexadecimal digits, or base64 in either alphabet, padded or not.
    pub fn from_text(text: &str) -> Option<Self> {
        let text = text.trim();
        from_hex(text).or_else(|| from_base64(text)).map(Self)
    }

    /// Hands the bytes out. Not for logs, answers or error messages.
    pub fn expose(&self) -> [u8; BYTES] {
        self.0
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealingKey(********)")
    }
}

pub(super) fn parse(text: &str) -> Result<Value, String> {
    SealingKey::from_text(text)
        .map(Value::SealingKey)
        .ok_or_else(|| {
            "is not a key of 32 bytes: write 64 hexadecimal digits, or base64; `openssl rand -hex 32` makes one"
                .to_owned()
        })
}

fn from_hex(text: &str) -> Option<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    hex::decode_to_slice(text, &mut bytes).ok()?;
    Some(bytes)
}

fn from_base64(text: &str) -> Option<[u8; BYTES]> {
    let config =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    [base64::alphabet::STANDARD, base64::alphabet::URL_SAFE]
        .iter()
        .find_map(|alphabet| GeneralPurpose::new(alphabet, config).decode(text).ok())
        .and_then(|bytes| bytes.try_into().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_common_format_of_a_key_is_read() {
        let bytes: [u8; BYTES] = std::array::from_fn(|at| 255 - at as u8);
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let base64 = base64::engine::general_purpose::STANDARD.encode(bytes);
        let url_safe = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes);
        assert!(base64.ends_with('=') && base64.contains('/') && url_safe.contains('_'));
        for text in [
            hex.clone(),
            hex.to_uppercase(),
            base64,
            url_safe,
            format!("{hex}\n"),
        ] {
            assert_eq!(SealingKey::from_text(&text), Some(SealingKey(bytes)));
        }
    }

    #[test]
    fn other_lengths_and_letters_are_no_keys() {
        for text in [
            String::new(),
            "00".repeat(31),
            "00".repeat(33),
            format!("{}zz", "00".repeat(31)),
            "AAAA".to_owned(),
            "é".repeat(32),
        ] {
            assert!(SealingKey::from_text(&text).is_none(), "{text}");
        }
    }

    #[test]
    fn it_never_shows_itself() {
        let key = SealingKey([7; BYTES]);
        assert_eq!(format!("{key:?}"), "SealingKey(********)");
        let problem = parse("hunter2").unwrap_err();
        assert!(!problem.contains("hunter2"), "{problem}");
    }
}
