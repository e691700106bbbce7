//! Protobuf's JSON mapping, as serde adapters.
//!
//! What it asks for: a field at its default value is left out, an `int64` is written as a string, bytes are base64; and
//! on input `null` means the default, a number may come as a string or a string as a number, base64 may be either
//! alphabet with or without padding, and unknown fields are ignored.

use std::fmt;
use std::marker::PhantomData;

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use serde::de::{self, Deserialize, Deserializer, Unexpected, Visitor};

const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const STANDARD_LENIENT: GeneralPurpose = GeneralPurpose::new(&base64::alphabet::STANDARD, LENIENT);
const URL_SAFE_LENIENT: GeneralPurpose = GeneralPurpose::new(&base64::alphabet::URL_SAFE, LENIENT);

/// Tells whether a value is its type's default, which protobuf's JSON leaves out.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Reads a value, `null` being the default.
pub fn null_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// The longest [`list`] that is read.
pub const MAX_LIST_LEN: usize = 200_000;

/// Reads a list of messages, `null` being an empty one, up to [`MAX_LIST_LEN`].
///
/// A message takes hundreds of bytes in memory and may take two on the wire, so a limit on the wire alone would let a
/// hostile sender make the reader hold a hundred times as much.
pub fn list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_any(ListVisitor(PhantomData))
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = seq.next_element()? {
            if list.len() == MAX_LIST_LEN {
                return Err(de::Error::custom(format_args!(
                    "list of more than {MAX_LIST_LEN} items"
                )));
            }
            list.push(item);
        }
        Ok(list)
    }

    fn visit_unit<E: de::Error>(self) -> Result<Vec<T>, E> {
        Ok(Vec::new())
    }
}

/// Reads an integer that comes as a number, as a string or as `null`.
pub fn int<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<i128> + Default,
{
    deserializer.deserialize_any(IntVisitor(PhantomData))
}

struct IntVisitor<T>(PhantomData<T>);

impl<T: TryFrom<i128> + Default> IntVisitor<T> {
    fn narrow<E: de::Error>(value: i128) -> Result<T, E> {
        T::try_from(value).map_err(|_| E::custom(format_args!("integer {value} out of range")))
    }
}

impl<T: TryFrom<i128> + Default> Visitor<'_> for IntVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an integer, or one in a string")
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<T, E> {
        Self::narrow(i128::from(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<T, E> {
        Self::narrow(i128::from(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<T, E> {
        // `1e3` and `5.0` are integers to protobuf. Beyond 2^63 a cast saturates, which `narrow` then refuses or which
        // is the type's own limit.
        if value.fract() != 0.0 || !value.is_finite() {
            return Err(E::invalid_value(Unexpected::Float(value), &self));
        }
        Self::narrow(value as i128)
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<T, E> {
        let number = value
            .parse::<i128>()
            .map_err(|_| E::invalid_value(Unexpected::Str(value), &self))?;
        Self::narrow(number)
    }

    fn visit_unit<E: de::Error>(self) -> Result<T, E> {
        Ok(T::default())
    }
}

/// An integer of 64 bits: written as a string, read as [`int`] does.
pub mod int64 {
    use serde::{Deserializer, Serializer};
    use std::fmt::Display;

    /// Writes the number as a string.
    pub fn serialize<S: Serializer, T: Display>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    /// Reads a number, a string or `null`.
    pub fn deserialize<'de, D, T>(deserializer: D) -> Result<T, D::Error>
    where
        D: Deserializer<'de>,
        T: TryFrom<i128> + Default,
    {
        super::int(deserializer)
    }
}

/// Bytes as base64.
pub mod base64_bytes {
    use std::borrow::Cow;

    use bytes::Bytes;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes padded base64 of the standard alphabet.
    pub fn serialize<S: Serializer>(value: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::encode_base64(value))
    }

    /// Reads base64 of either alphabet; `null` is no bytes.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        let text = Option::<Text<'de>>::deserialize(deserializer)?;
        let Some(Text(text)) = text else {
            return Ok(Bytes::new());
        };
        super::decode_base64(&text)
            .map(Bytes::from)
            .map_err(D::Error::custom)
    }

    /// Borrows from the input when the string holds no escapes, which base64 hardly ever does.
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
}

/// Encodes bytes as padded base64 of the standard alphabet.
pub fn encode_base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Decodes base64 of the standard or the URL-safe alphabet, padded or not.
pub fn decode_base64(text: &str) -> Result<Vec<u8>, base64::DecodeError> {
    let is_url_safe = text.bytes().any(|byte| byte == b'-' || byte == b'_');
    if is_url_safe {
        URL_SAFE_LENIENT.decode(text)
    } else {
        STANDARD_LENIENT.decode(text)
    }
}

/// A message without fields, such as the answer of `SendInput`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Empty {}

/// Declares a protobuf enum: written by name, read by name or by number, what is unknown being the first variant.
macro_rules! proto_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $number:literal $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
        pub enum $name {
            /// Not said, or a value this version does not know.
            #[default]
            Unspecified,
            $($(#[$vmeta])* $variant,)+
        }

        impl $name {
            /// Returns the name protobuf gives the value.
            pub fn as_str(self) -> &'static str {
                match self {
                    Self::Unspecified => Self::UNSPECIFIED,
                    $(Self::$variant => $text,)+
                }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Ok(match $crate::json::NameOrNumber::deserialize(deserializer)? {
                    $($crate::json::NameOrNumber::Name(name) if name == $text => Self::$variant,)+
                    $($crate::json::NameOrNumber::Number($number) => Self::$variant,)+
                    _ => Self::Unspecified,
                })
            }
        }
    };
}
pub(crate) use proto_enum;

/// The two ways an enum's value may be written.
#[derive(serde::Deserialize)]
#[serde(untagged)]
pub(crate) enum NameOrNumber {
    Name(String),
    Number(i64),
    Nothing(()),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    struct Number(#[serde(deserialize_with = "int")] u32);

    #[test]
    fn integers_are_read_from_numbers_strings_and_null() {
        for (text, expected) in [
            ("7", 7),
            ("\"7\"", 7),
            ("7.0", 7),
            ("null", 0),
            ("4294967295", u32::MAX),
        ] {
            assert_eq!(
                serde_json::from_str::<Number>(text).unwrap().0,
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn integers_out_of_range_or_with_fractions_are_refused() {
        for text in [
            "-1",
            "4294967296",
            "7.5",
            "\"x\"",
            "\"\"",
            "1e300",
            "[]",
            "true",
        ] {
            assert!(serde_json::from_str::<Number>(text).is_err(), "{text}");
        }
    }

    #[derive(Debug, serde::Deserialize)]
    struct List(#[serde(deserialize_with = "list")] Vec<Empty>);

    #[test]
    fn lists_are_read_up_to_their_limit() {
        let of_len = |len: usize| format!("[{}]", vec!["{}"; len].join(","));
        let read = |text: &str| serde_json::from_str::<List>(text).map(|list| list.0.len());
        assert_eq!(read("null").unwrap(), 0);
        assert_eq!(read(&of_len(MAX_LIST_LEN)).unwrap(), MAX_LIST_LEN);
        assert!(read(&of_len(MAX_LIST_LEN + 1)).is_err());
        assert!(read("{}").is_err());
    }

    #[test]
    fn base64_of_both_alphabets_is_read_with_and_without_padding() {
        for text in ["+/8=", "+/8", "-_8=", "-_8"] {
            assert_eq!(decode_base64(text).unwrap(), [0xfb, 0xff], "{text}");
        }
        assert!(decode_base64("not base64!").is_err());
    }
}
