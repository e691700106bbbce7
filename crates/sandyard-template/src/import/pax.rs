//! Extended headers: `length key=value` lines that replace and add to what a header block can say.

use super::header::Extent;
use crate::error::{Result, TemplateError};
use crate::tree::MAX_PATH_BYTES;
use crate::xattr::MAX_VALUE;

/// Most extents of one sparse file.
pub(super) const MAX_EXTENTS: usize = 100_000;
/// Most extended attributes of one entry.
const MAX_XATTRS: usize = 256;

/// What extended headers say of the next entry.
#[derive(Clone, Debug, Default)]
pub(super) struct Extended {
    pub(super) path: Option<Vec<u8>>,
    pub(super) link: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    pub(super) uid: Option<u64>,
    pub(super) gid: Option<u64>,
    pub(super) mtime: Option<(i64, i64)>,
    pub(super) xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    pub(super) sparse: Sparse,
}

/// What GNU tar says of a sparse file in extended headers, in its three ways of saying it.
#[derive(Clone, Debug, Default)]
pub(super) struct Sparse {
    /// 1 when the map is at the beginning of the data.
    pub(super) major: Option<u64>,
    pub(super) name: Option<Vec<u8>>,
    pub(super) real_size: Option<u64>,
    pub(super) map: Option<Vec<Extent>>,
    /// Offset that waits for its length, in the oldest way.
    offset: Option<u64>,
}

impl Extended {
    /// Adds the records of one extended header.
    pub(super) fn add(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let (key, value, rest) = record(bytes)?;
            self.set(key, value)?;
            bytes = rest;
        }
        Ok(())
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        match key {
            b"path" => self.path = Some(name(value)?),
            b"linkpath" => self.link = Some(name(value)?),
            b"size" => self.size = Some(decimal(value)?),
            b"uid" => self.uid = Some(decimal(value)?),
            b"gid" => self.gid = Some(decimal(value)?),
            b"mtime" => self.mtime = Some(time(value)?),
            b"GNU.sparse.major" => self.sparse.major = Some(decimal(value)?),
            b"GNU.sparse.name" => self.sparse.name = Some(name(value)?),
            b"GNU.sparse.size" | b"GNU.sparse.realsize" => {
                self.sparse.real_size = Some(decimal(value)?);
            }
            b"GNU.sparse.map" => self.sparse.map = Some(map(value)?),
            b"GNU.sparse.offset" => self.sparse.offset = Some(decimal(value)?),
            b"GNU.sparse.numbytes" => {
                let offset = self.sparse.offset.take();
                let offset =
                    offset.ok_or_else(|| TemplateError::archive("a sparse map is damaged"))?;
                let length = decimal(value)?;
                push(
                    self.sparse.map.get_or_insert_default(),
                    Extent { offset, length },
                )?;
            }
            _ => {
                if let Some(attribute) = key.strip_prefix(b"SCHILY.xattr.") {
                    self.add_xattr(attribute, value)?;
                }
                // Unknown keys are to be ignored, says POSIX; access lists and labels are text we do not take.
            }
        }
        Ok(())
    }

    fn add_xattr(&mut self, attribute: &[u8], value: &[u8]) -> Result<()> {
        if attribute.contains(&0) || value.len() > MAX_VALUE || self.xattrs.len() >= MAX_XATTRS {
            return Err(TemplateError::archive(
                "extended attributes are too large or too many",
            ));
        }
        self.xattrs.push((attribute.to_vec(), value.to_vec()));
        Ok(())
    }
}

/// Key, value, and the bytes after them.
type Record<'a> = (&'a [u8], &'a [u8], &'a [u8]);

/// Splits off the first record: `LENGTH KEY=VALUE\n`, the length counting all of it.
fn record(bytes: &[u8]) -> Result<Record<'_>> {
    let bad = || TemplateError::archive("an extended header is damaged");
    let space = bytes
        .iter()
        .take(20)
        .position(|byte| *byte == b' ')
        .ok_or_else(bad)?;
    let length = usize::try_from(decimal(&bytes[..space])?).map_err(|_| bad())?;
    if length <= space + 1 || length > bytes.len() || bytes[length - 1] != b'\n' {
        return Err(bad());
    }
    let content = &bytes[space + 1..length - 1];
    let equals = content
        .iter()
        .position(|byte| *byte == b'=')
        .ok_or_else(bad)?;
    Ok((&content[..equals], &content[equals + 1..], &bytes[length..]))
}

fn name(value: &[u8]) -> Result<Vec<u8>> {
    if value.contains(&0) || value.len() > MAX_PATH_BYTES {
        return Err(TemplateError::archive("a name is too long or holds a NUL"));
    }
    Ok(value.to_vec())
}

pub(super) fn decimal(value: &[u8]) -> Result<u64> {
    let digits = std::str::from_utf8(value)
        .ok()
        .filter(|text| !text.starts_with('+'));
    // Half the range is more than any file system holds, and leaves room to add to.
    digits
        .and_then(|text| text.parse().ok())
        .filter(|number| *number <= u64::MAX / 2)
        .ok_or_else(|| TemplateError::archive("a number in an extended header is none"))
}

/// Seconds, with sign and fraction, as seconds and nanoseconds after them.
fn time(value: &[u8]) -> Result<(i64, i64)> {
    let bad = || TemplateError::archive("a time in an extended header is none");
    let text = std::str::from_utf8(value).map_err(|_| bad())?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(bad());
    }
    let seconds: i64 = whole.parse().map_err(|_| bad())?;
    let digits: String = fraction
        .chars()
        .chain("000000000".chars())
        .take(9)
        .collect();
    let nanoseconds: i64 = digits.parse().map_err(|_| bad())?;
    if whole.starts_with('-') && nanoseconds > 0 {
        return Ok((
            seconds.checked_sub(1).ok_or_else(bad)?,
            1_000_000_000 - nanoseconds,
        ));
    }
    Ok((seconds, nanoseconds))
}

fn map(value: &[u8]) -> Result<Vec<Extent>> {
    let mut extents = Vec::new();
    let mut numbers = value.split(|byte| *byte == b',');
    while let Some(offset) = numbers.next() {
        let length = numbers.next();
        let length = length.ok_or_else(|| TemplateError::archive("a sparse map is damaged"))?;
        let (offset, length) = (decimal(offset)?, decimal(length)?);
        push(&mut extents, Extent { offset, length })?;
    }
    Ok(extents)
}

/// Adds an extent within bounds.
pub(super) fn push(extents: &mut Vec<Extent>, extent: Extent) -> Result<()> {
    if extents.len() >= MAX_EXTENTS {
        return Err(TemplateError::archive("a sparse file has too many pieces"));
    }
    extents.push(extent);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read() {
        let mut extended = Extended::default();
        extended
            .add(b"11 path=ab\n19 mtime=-1.250000\n30 SCHILY.xattr.user.k=a=b\ncd\n")
            .expect("sound");
        assert_eq!(extended.path.as_deref(), Some(&b"ab"[..]));
        assert_eq!(extended.mtime, Some((-2, 750_000_000)));
        assert_eq!(extended.xattrs, [(b"user.k".to_vec(), b"a=b\ncd".to_vec())]);
    }

    #[test]
    fn damaged_records_are_refused() {
        for bytes in [
            &b"x"[..],
            b"5 a=b",
            b"99 path=a\n",
            b"0 a=b\n",
            b"2 \n",
            b"6 ab\n",
            b"18446744073709551616 a=b\n",
            b"12 size=+12\n",
            b"12 path=a\0b\n",
        ] {
            assert!(Extended::default().add(bytes).is_err(), "{bytes:?}");
        }
    }
}
