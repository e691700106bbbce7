//! As much of DER as it takes to find a name in a certificate: values of a tag, a length and bytes.

/// Tags.
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const UTF8_STRING: u8 = 12;

/// Takes the first value off: its tag, what is in it, and what is behind it.
pub(super) fn next(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&short, rest) = rest.split_first()?;
    let (length, rest) = match short {
        0..=0x7f => (usize::from(short), rest),
        // The low bits are the number of length bytes.
        0x81..=0x83 => {
            let (digits, rest) = rest.split_at_checked(usize::from(short & 0x7f))?;
            let length = digits
                .iter()
                .fold(0, |length, digit| length << 8 | usize::from(*digit));
            (length, rest)
        }
        _ => return None,
    };
    let (content, behind) = rest.split_at_checked(length)?;
    Some((tag, content, behind))
}

/// As [`next`], when the value is of that tag.
pub(super) fn expect(tag: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (found, content, behind) = next(bytes)?;
    (found == tag).then_some((content, behind))
}

/// All values, one behind the other.
pub(super) fn all(mut bytes: &[u8]) -> Option<Vec<(u8, &[u8])>> {
    let mut values = Vec::new();
    while !bytes.is_empty() {
        let (tag, content, behind) = next(bytes)?;
        values.push((tag, content));
        bytes = behind;
    }
    Some(values)
}

/// Writes a value.
pub(super) fn write(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let mut bytes = vec![tag];
    if length < 0x80 {
        bytes.push(length as u8);
    } else {
        let digits: Vec<u8> = length
            .to_be_bytes()
            .into_iter()
            .skip_while(|digit| *digit == 0)
            .collect();
        bytes.push(0x80 | digits.len() as u8);
        bytes.extend(digits);
    }
    bytes.extend(content);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET: u8 = 0x31;

    #[test]
    fn what_is_written_reads_back_whatever_its_length() {
        for length in [0, 1, 127, 128, 255, 256, 70_000] {
            let content = vec![7; length];
            let mut bytes = write(SET, &content);
            bytes.push(9);
            assert_eq!(
                next(&bytes),
                Some((SET, &content[..], &[9][..])),
                "{length}"
            );
        }
    }

    #[test]
    fn what_is_cut_off_or_has_no_length_is_nothing() {
        for bytes in [
            &[][..],
            &[1],
            &[1, 2, 0],
            &[1, 0x80, 0, 0],
            &[1, 0x82, 1],
            &[1, 0x84, 0, 0, 0, 0],
        ] {
            assert_eq!(next(bytes), None, "{bytes:?}");
        }
    }
}
