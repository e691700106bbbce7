//! One 512-byte header block of a tar archive, as bytes and numbers. Fields as in POSIX `pax`, with GNU's additions.

use crate::error::{Result, TemplateError};

/// Everything in a tar archive comes in blocks of this size.
pub(super) const BLOCK: usize = 512;

/// A header block whose checksum is right.
pub(super) struct Header<'a> {
    block: &'a [u8; BLOCK],
}

/// A stretch of data in a sparse file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) offset: u64,
    pub(super) length: u64,
}

impl<'a> Header<'a> {
    /// Takes a block; `None` for the block of zeros that ends an archive.
    pub(super) fn parse(block: &'a [u8; BLOCK]) -> Result<Option<Self>> {
        if block.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let stored = number(&block[148..156])?;
        let counted = |signed: bool| -> i64 {
            let bytes = block.iter().enumerate();
            let value = |(at, byte): (usize, &u8)| match (at, signed) {
                (148..156, _) => i64::from(b' '),
                (_, true) => i64::from(*byte as i8),
                (_, false) => i64::from(*byte),
            };
            bytes.map(value).sum()
        };
        // Some old writers summed signed characters.
        if stored != counted(false) && stored != counted(true) {
            return Err(TemplateError::archive(
                "not a tar archive, or a damaged one",
            ));
        }
        Ok(Some(Self { block }))
    }

    pub(super) fn kind(&self) -> u8 {
        self.block[156]
    }

    /// Name, with the prefix field of POSIX archives before it; GNU archives use those bytes otherwise.
    pub(super) fn path(&self) -> Vec<u8> {
        let name = text(&self.block[0..100]);
        let prefix = text(&self.block[345..500]);
        let posix = &self.block[257..263] == b"ustar\0";
        if !posix || prefix.is_empty() {
            return name.to_vec();
        }
        [prefix, b"/", name].concat()
    }

    pub(super) fn link(&self) -> Vec<u8> {
        text(&self.block[157..257]).to_vec()
    }

    pub(super) fn mode(&self) -> Result<u32> {
        // Some writers leave type bits in.
        Ok((number(&self.block[100..108])? & 0o7777) as u32)
    }

    pub(super) fn uid(&self) -> Result<u32> {
        Ok(id(number(&self.block[108..116])?))
    }

    pub(super) fn gid(&self) -> Result<u32> {
        Ok(id(number(&self.block[116..124])?))
    }

    pub(super) fn size(&self) -> Result<u64> {
        size(&self.block[124..136])
    }

    pub(super) fn mtime(&self) -> Result<i64> {
        number(&self.block[136..148])
    }

    /// Extents in the header of a GNU sparse file, and whether blocks of more follow.
    pub(super) fn gnu_extents(&self, into: &mut Vec<Extent>) -> Result<bool> {
        extents(&self.block[386..482], into)?;
        Ok(self.block[482] != 0)
    }

    /// Size of a GNU sparse file with its holes.
    pub(super) fn gnu_real_size(&self) -> Result<u64> {
        size(&self.block[483..495])
    }
}

/// Extents in one block that follows the header of a GNU sparse file, and whether there is another.
pub(super) fn more_gnu_extents(block: &[u8; BLOCK], into: &mut Vec<Extent>) -> Result<bool> {
    extents(&block[0..504], into)?;
    Ok(block[504] != 0)
}

fn extents(bytes: &[u8], into: &mut Vec<Extent>) -> Result<()> {
    for pair in bytes.chunks_exact(24) {
        if pair[0] == 0 {
            break;
        }
        into.push(Extent {
            offset: size(&pair[..12])?,
            length: size(&pair[12..])?,
        });
    }
    Ok(())
}

/// Bytes up to the first NUL.
fn text(field: &[u8]) -> &[u8] {
    let end = field.iter().position(|byte| *byte == 0);
    &field[..end.unwrap_or(field.len())]
}

/// An id too large to be one is nobody a sandbox knows, which is decided where owners are set.
pub(super) fn id(value: i64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn size(field: &[u8]) -> Result<u64> {
    u64::try_from(number(field)?).map_err(|_| TemplateError::archive("a size is negative"))
}

/// Octal digits, or with the highest bit set GNU's big-endian binary.
fn number(field: &[u8]) -> Result<i64> {
    let bad = || TemplateError::archive("a number in a header is none");
    if field[0] & 0x80 != 0 {
        // Two's complement over the whole field but the marker bit.
        let first = i64::from(field[0] & 0x7f);
        let start = if first & 0x40 != 0 {
            first - 0x80
        } else {
            first
        };
        return field[1..].iter().try_fold(start, |value, byte| {
            let shifted = value.checked_mul(256).ok_or_else(bad)?;
            shifted.checked_add(i64::from(*byte)).ok_or_else(bad)
        });
    }
    let digits = field
        .iter()
        .skip_while(|byte| **byte == b' ')
        .take_while(|byte| !matches!(**byte, 0 | b' '));
    digits
        .into_iter()
        .try_fold(0_i64, |value, byte| match byte {
            b'0'..=b'7' => value
                .checked_mul(8)
                .and_then(|value| value.checked_add(i64::from(byte - b'0')))
                .ok_or_else(bad),
            _ => Err(bad()),
        })
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_are_octal_or_binary() {
        assert_eq!(number(b"0000644\0").expect("octal"), 0o644);
        assert_eq!(number(b"   644 \0").expect("padded"), 0o644);
        assert_eq!(number(b"\0\0\0\0\0\0\0\0").expect("empty"), 0);
        assert_eq!(
            number(&[0x80, 0, 0, 1, 0, 0, 0, 0]).expect("binary"),
            1 << 32
        );
        assert_eq!(number(&[0xff; 12]).expect("negative"), -1);
    }

    #[test]
    fn other_numbers_are_refused() {
        assert!(number(b"0000648\0").is_err());
        assert!(number(b"-1\0\0\0\0\0\0").is_err());
        assert!(
            number(&[
                0x80 | 0x3f,
                255,
                255,
                255,
                255,
                255,
                255,
                255,
                255,
                255,
                255,
                255
            ])
            .is_err()
        );
    }
}
