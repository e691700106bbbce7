//! Headers of tar archives.

const BLOCK: usize = 512;

/// The end of an archive.
pub(super) const END: [u8; 2 * BLOCK] = [0; 2 * BLOCK];

/// The header of a folder.
pub(super) fn folder(name: &str, mode: u32) -> Vec<u8> {
    header(name, b'5', mode, 0)
}

/// The header of a file. Its bytes and [`padding`] follow.
pub(super) fn file(name: &str, mode: u32, size: u64) -> Vec<u8> {
    header(name, b'0', mode, size)
}

/// Fills the last block of a file.
pub(super) fn padding(size: u64) -> Vec<u8> {
    let over = (size % BLOCK as u64) as usize;
    vec![0; (BLOCK - over) % BLOCK]
}

fn header(name: &str, kind: u8, mode: u32, size: u64) -> Vec<u8> {
    let mut block = vec![0; BLOCK];
    let mut write = |at: usize, text: &[u8]| block[at..at + text.len()].copy_from_slice(text);
    write(0, name.as_bytes());
    write(100, format!("{mode:07o}\0").as_bytes());
    // Owned by root.
    write(108, b"0000000\0");
    write(116, b"0000000\0");
    write(124, format!("{size:011o}\0").as_bytes());
    write(136, b"00000000000\0");
    // The checksum counts its own field as blanks.
    write(148, b"        ");
    write(156, &[kind]);
    write(257, b"ustar\x0000");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_consist_of_full_blocks() {
        assert_eq!(folder("a/", 0o755).len(), BLOCK);
        for (size, fill) in [(0, 0), (1, 511), (512, 0), (513, 511)] {
            assert_eq!(padding(size).len(), fill, "{size}");
        }
        let block = file("agent", 0o555, 0o1234);
        assert_eq!(&block[124..136], b"00000001234\0");
        let sum: u32 = block[..148]
            .iter()
            .chain(&block[156..])
            .map(|b| u32::from(*b))
            .sum();
        let sum = sum + 8 * u32::from(b' ');
        assert_eq!(&block[148..154], format!("{sum:06o}").as_bytes());
    }
}
