//! Docker's times: RFC 3339, with up to nine digits of a second.

/// Milliseconds since 1970; none: it is no such time, or the one that stands for never.
pub(super) fn millis(text: &str) -> Option<i64> {
    let (date, rest) = text.split_once('T')?;
    let [year, month, day] = numbers(date, '-')?;
    if year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let zone_at = rest.find(['Z', '+', '-'])?;
    let (time, zone) = rest.split_at(zone_at);
    let (whole, fraction) = time.split_once('.').unwrap_or((time, ""));
    let [hour, minute, second] = numbers(whole, ':')?;
    let mut digits: String = fraction.chars().take(3).collect();
    while digits.len() < 3 {
        digits.push('0');
    }
    let milli: i64 = digits.parse().ok()?;
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    Some((seconds - offset(zone)?) * 1000 + milli)
}

/// Seconds that a zone is ahead.
fn offset(zone: &str) -> Option<i64> {
    let sign = match zone.as_bytes().first()? {
        b'Z' => return Some(0),
        b'-' => -1,
        _ => 1,
    };
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    Some(sign * (hours * 3600 + minutes * 60))
}

fn numbers(text: &str, separator: char) -> Option<[i64; 3]> {
    let mut numbers = text.split(separator).map(|part| part.parse::<u16>().ok());
    let three = [numbers.next()??, numbers.next()??, numbers.next()??];
    numbers.next().is_none().then(|| three.map(i64::from))
}

/// Days since 1970, of the calendar we use. A year that begins in March has its odd day at the end.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = match month {
        1 | 2 => (year - 1, month + 9),
        _ => (year, month - 3),
    };
    let leaps = year / 4 - year / 100 + year / 400;
    let before_month = (153 * month + 2) / 5;
    // 719468 days lie between the first of March of the year 0 and 1970.
    year * 365 + leaps + before_month + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::millis;

    #[test]
    fn times_are_read() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2024-02-29T12:30:15.123456789Z", Some(1_709_209_815_123)),
            ("2024-02-29T14:30:15.1+02:00", Some(1_709_209_815_100)),
            ("2000-03-01T00:00:00-01:00", Some(951_872_400_000)),
            ("0001-01-01T00:00:00Z", None),
            ("", None),
            ("yesterday", None),
            ("2024-13-01T00:00:00Z", None),
        ] {
            assert_eq!(millis(text), expected, "{text}");
        }
    }
}
