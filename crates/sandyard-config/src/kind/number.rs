//! Numbers, sizes, cores, and on or off.

use sandyard_core::size::Size;

use super::Value;

pub(super) fn switch(text: &str) -> Result<Value, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "on" | "yes" | "1" => Ok(Value::Switch(true)),
        "false" | "off" | "no" | "0" => Ok(Value::Switch(false)),
        _ => Err("is neither true nor false".to_owned()),
    }
}

pub(super) fn integer(text: &str, min: u64, max: u64) -> Result<Value, String> {
    let number: u64 = text
        .trim()
        .parse()
        .map_err(|_| "is not a whole number".to_owned())?;
    within(number, min, max, |number| number.to_string())
}

pub(super) fn size(text: &str, min: u64, max: u64) -> Result<Value, String> {
    let Size(bytes) = text.parse().map_err(|_| {
        "is not a size: write a number with an optional k, m, g or t, like 512m or 2g".to_owned()
    })?;
    within(bytes, min, max, |bytes| Size(bytes).to_string())
}

pub(super) fn cores(text: &str, min: u64, max: u64) -> Result<Value, String> {
    let millis = millis(text.trim()).ok_or("is not a number of cores, like 2 or 0.5")?;
    within(millis, min, max, |millis| match millis % 1000 {
        0 => (millis / 1000).to_string(),
        part => format!("{}.{part:03}", millis / 1000),
    })
}

/// Reads a decimal number with up to three places, without rounding.
fn millis(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(part) || part.trim_end_matches('0').len() > 3 {
        return None;
    }
    let part: u64 = format!("{part:0<3}")[..3].parse().ok()?;
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(1000)?
        .checked_add(part)
}

fn within(
    number: u64,
    min: u64,
    max: u64,
    format: impl Fn(u64) -> String,
) -> Result<Value, String> {
    match (min..=max).contains(&number) {
        true => Ok(Value::Number(number)),
        false if max == u64::MAX => Err(format!("must be at least {}", format(min))),
        false => Err(format!(
            "must be between {} and {}",
            format(min),
            format(max)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_read_exactly() {
        for (text, expected) in [
            ("2", Some(2000)),
            ("2.0", Some(2000)),
            ("0.5", Some(500)),
            ("1.2500", Some(1250)),
            ("0.001", Some(1)),
            ("0.0001", None),
            ("", None),
            (".5", None),
            ("-1", None),
            ("1e3", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(millis(text), expected, "{text}");
        }
    }

    #[test]
    fn a_refusal_shows_the_range_in_its_unit() {
        assert_eq!(
            size("1k", 16 << 20, 64 << 30).unwrap_err(),
            "must be between 16m and 64g"
        );
        assert_eq!(
            cores("100", 10, 64_000).unwrap_err(),
            "must be between 0.010 and 64"
        );
        assert_eq!(integer("0", 1, u64::MAX).unwrap_err(), "must be at least 1");
    }

    #[test]
    fn switches_take_the_usual_words() {
        for text in ["true", "ON", "yes", "1"] {
            assert_eq!(switch(text), Ok(Value::Switch(true)), "{text}");
        }
        for text in ["false", "off", "No", "0"] {
            assert_eq!(switch(text), Ok(Value::Switch(false)), "{text}");
        }
        assert!(switch("maybe").is_err());
    }
}
