//! `512m` and `2g`, read and written.

use std::fmt;
use std::str::FromStr;

/// A number of bytes as people write it: `1048576`, `512k`, `512m`, `2g`, `1.5g`, `2GiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// Says that a text is not a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a size: write a number with an optional k, m, g or t, like 512m or 2g")]
pub struct SizeError {
    text: String,
}

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || SizeError {
            text: text.to_owned(),
        };
        let lower = text.trim().to_ascii_lowercase();
        let digits = lower.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit: f64 = match &lower[digits.len()..] {
            "" | "b" => 1.0,
            "k" | "kb" | "kib" => 1024.0,
            "m" | "mb" | "mib" => 1048576.0,
            "g" | "gb" | "gib" => 1073741824.0,
            "t" | "tb" | "tib" => 1099511627776.0,
            _ => return Err(error()),
        };
        let number: f64 = digits.trim().parse().map_err(|_| error())?;
        let bytes = number * unit;
        if !(0.0..=9.0e18).contains(&bytes) {
            return Err(error());
        }
        Ok(Self(bytes as u64))
    }
}

impl Size {
    /// The size for a message: `16 MiB`, `11.7 GiB`; rounded down to a tenth.
    #[must_use]
    pub fn readable(self) -> String {
        const UNITS: [(&str, u64); 4] = [
            ("TiB", 1 << 40),
            ("GiB", 1 << 30),
            ("MiB", 1 << 20),
            ("KiB", 1 << 10),
        ];
        let Some((name, unit)) = UNITS.into_iter().find(|(_, unit)| self.0 >= *unit) else {
            return match self.0 {
                1 => "1 byte".to_owned(),
                bytes => format!("{bytes} bytes"),
            };
        };
        match (self.0 / unit, self.0 % unit * 10 / unit) {
            (whole, 0) => format!("{whole} {name}"),
            (whole, tenths) => format!("{whole}.{tenths} {name}"),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, bytes) in [
            ("t", 1u64 << 40),
            ("g", 1 << 30),
            ("m", 1 << 20),
            ("k", 1 << 10),
        ] {
            if self.0 >= bytes && self.0.is_multiple_of(bytes) {
                return write!(f, "{}{unit}", self.0 / bytes);
            }
        }
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("512m", 512 << 20),
            ("2g", 2 << 30),
            ("2GiB", 2 << 30),
            ("1.5g", 3 << 29),
            ("77", 77),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
    }

    #[test]
    fn a_message_has_a_unit_and_no_long_tail() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (16 << 20, "16 MiB"),
            ((12 << 30) - 1, "11.9 GiB"),
            (64 << 30, "64 GiB"),
            (3 << 39, "1.5 TiB"),
        ] {
            assert_eq!(Size(bytes).readable(), text);
        }
    }

    #[test]
    fn malformed_sizes_are_refused() {
        for text in ["", "m", "-1g", "2x", "NaN", "inf", "1e400", "999999999t"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }

    #[test]
    fn written_sizes_read_back() {
        for bytes in [0, 1, 1023, 1024, 512 << 20, (2 << 30) + 1, 3 << 40] {
            assert_eq!(Size(bytes).to_string().parse(), Ok(Size(bytes)));
        }
    }
}
